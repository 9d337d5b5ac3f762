// The verbs around the embedded shape: `up`, `tiny-model`, `check-model`.
#pragma once

#include "tools/cairn/verb.h"

namespace cairn::tools {

void AddUpVerb(CLI::App& app, Invocation& invocation);
void AddModelVerbs(CLI::App& app, Invocation& invocation);

}  // namespace cairn::tools
