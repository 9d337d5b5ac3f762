// A plan as text, as JSON and as a page.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/plan.h"
#include "tools/planner/reliability.h"
#include "tools/planner/trace_plan.h"

namespace cairn::tools {

// `trace` is null where the scenario has none.
std::string PlanText(const Plan& plan, const TracePlan* trace);
std::string PlanJson(const Plan& plan, const TracePlan* trace);
std::string PlanHtml(const Plan& plan, const TracePlan* trace);

// Of one code: in closed form, and played out.
struct CodeOutlook {
  CodeShape code;
  Reliability exact;
  MonteCarlo played;
};
std::string ReliabilityText(const std::vector<CodeOutlook>& codes);
std::string ReliabilityHtml(const std::vector<CodeOutlook>& codes);
std::string ReliabilityJson(const std::vector<CodeOutlook>& codes);

}  // namespace cairn::tools
