// A plan as text, as JSON and as a page.
#pragma once

#include <string>

#include "tools/planner/plan.h"
#include "tools/planner/reliability.h"

namespace cairn::tools {

std::string PlanText(const Plan& plan);
std::string PlanJson(const Plan& plan);
std::string PlanHtml(const Plan& plan);

// Codes side by side, each with a Monte Carlo of `cycles` beside its closed form.
std::string ReliabilityText(const std::vector<CodeShape>& codes, const FailureRates& rates,
                            uint64_t cycles, uint64_t seed);

}  // namespace cairn::tools
