// Puts the groups of figures together and holds the claims against them.
#include "tools/planner/plan.h"

#include <fmt/format.h>

#include <cmath>

#include "kvstore/base/check.h"
#include "tools/planner/loads.h"

namespace cairn::tools {
namespace {

kv::Result<ClaimCheck> Check(const Claim& claim, const Plan& plan) {
  const Figure* figure = plan.Find(claim.figure);
  if (figure == nullptr) {
    return kv::Status(kv::Code::kInvalid,
                      fmt::format("a claim is about '{}', which is no figure of the plan; --json "
                                  "prints the ids of all",
                                  claim.figure));
  }
  auto claimed = ParseQuantity(claim.value, figure->unit);
  if (!claimed.ok()) {
    return kv::Status(kv::Code::kInvalid,
                      "the claim about " + claim.figure + ": " + claimed.status().message());
  }
  ClaimCheck check{.claim = claim,
                   .label = figure->label,
                   .claimed = claimed.value(),
                   .planned = figure->value,
                   .unit = figure->unit};
  if (check.claimed == 0) {
    return kv::Status(kv::Code::kInvalid, "the claim about " + claim.figure + " is 0");
  }
  check.deviation = check.planned / check.claimed - 1;
  check.within = std::abs(check.deviation) <= claim.within;
  return check;
}

std::string Shown(double value, Unit unit) { return FormatQuantity(value, unit); }

std::vector<std::string> NotesOn(const Scenario& scenario, const Loads& loads) {
  std::vector<std::string> notes;
  if (scenario.gpus > 0 && scenario.tokens_per_day > 0) {
    notes.push_back(fmt::format(
        "gpu.count = {} is not used: traffic.tokens_per_day = {} says how much traffic there is, "
        "and that needs {}. Leave one of the two out.",
        Shown(scenario.gpus, Unit::kCount), Shown(scenario.tokens_per_day, Unit::kTokens),
        Shown(loads.gpus, Unit::kCount)));
  }
  if (scenario.bytes_per_token > 0 && !scenario.layout.groups.empty()) {
    notes.push_back(fmt::format(
        "model.bytes_per_token = {} is used instead of the {} of the model's layout.",
        Shown(scenario.bytes_per_token, Unit::kBytes),
        Shown(scenario.layout.BytesPerToken(), Unit::kBytes)));
  }
  if (!scenario.model.empty() && !scenario.model_config.empty()) {
    notes.push_back("model.name = " + scenario.model + " is not used: model.config is.");
  }
  return notes;
}

}  // namespace

const Figure* Plan::Find(std::string_view id) const {
  for (const FigureGroup& group : groups) {
    for (const Figure& figure : group.figures) {
      if (figure.id == id) return &figure;
    }
  }
  return nullptr;
}

double Plan::Value(std::string_view id) const {
  const Figure* figure = Find(id);
  KV_CHECK(figure != nullptr);
  return figure->value;
}

bool Plan::ClaimsHold() const {
  for (const ClaimCheck& check : claims) {
    if (check.within != check.claim.adds_up) return false;
  }
  return true;
}

kv::Result<Plan> MakePlan(const Scenario& scenario) {
  KV_RETURN_IF_ERROR(Validate(scenario));
  const Loads loads(scenario);
  Plan plan{.name = scenario.name, .currency = scenario.currency};
  plan.groups = {TrafficFigures(scenario, loads), BlockFigures(scenario, loads),
                 StoreFigures(scenario, loads),   WearFigures(scenario, loads),
                 RebuildFigures(scenario, loads), MemoryFigures(scenario, loads),
                 MoneyFigures(scenario, loads)};
  plan.notes = NotesOn(scenario, loads);
  for (const Claim& claim : scenario.claims) {
    KV_ASSIGN_OR_RETURN(ClaimCheck check, Check(claim, plan));
    plan.claims.push_back(std::move(check));
  }
  return plan;
}

}  // namespace cairn::tools
