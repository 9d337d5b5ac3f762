// The verbs that speak with a running store; each adds itself to the command line.
#pragma once

#include "tools/cairn/verb.h"

namespace cairn::tools {

void AddStatusVerb(CLI::App& app, Invocation& invocation);
void AddNamespaceVerbs(CLI::App& app, Invocation& invocation);
void AddPutVerb(CLI::App& app, Invocation& invocation);
void AddGetVerb(CLI::App& app, Invocation& invocation);
void AddListVerb(CLI::App& app, Invocation& invocation);
void AddInspectVerb(CLI::App& app, Invocation& invocation);
void AddDeleteVerb(CLI::App& app, Invocation& invocation);
void AddTargetsVerb(CLI::App& app, Invocation& invocation);
void AddScrubVerbs(CLI::App& app, Invocation& invocation);
void AddRepairVerbs(CLI::App& app, Invocation& invocation);
void AddClusterVerb(CLI::App& app, Invocation& invocation);
void AddDrainVerb(CLI::App& app, Invocation& invocation);
void AddMetricsVerb(CLI::App& app, Invocation& invocation);
void AddBenchVerb(CLI::App& app, Invocation& invocation);

}  // namespace cairn::tools
