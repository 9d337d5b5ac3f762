// From a scenario to figures: traffic, store, servers, wear, rebuild, memory, money.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/scenario.h"

namespace cairn::tools {

struct Figure {
  std::string id;     // "money.per_gpu_hour": for claims, JSON and tests.
  std::string label;  // For people.
  double value = 0;
  Unit unit = Unit::kCount;
  std::string how;  // In words, how it comes about.
};

struct FigureGroup {
  std::string title;
  std::vector<Figure> figures;
};

// How a published figure compares.
struct ClaimCheck {
  Claim claim;
  std::string label;
  double claimed = 0;
  double planned = 0;
  Unit unit = Unit::kCount;
  double deviation = 0;  // planned / claimed - 1.
  bool within = false;
};

struct Plan {
  std::string name;
  std::string currency;
  std::vector<FigureGroup> groups = {};
  std::vector<ClaimCheck> claims = {};
  std::vector<std::string> notes = {};  // Inputs that are not used, and what is in their place.

  // Null when there is no such figure.
  const Figure* Find(std::string_view id) const;
  // A check fails when there is no such figure.
  double Value(std::string_view id) const;
  // Every claim that should add up does, and every one that should not does not.
  bool ClaimsHold() const;
};

// `scenario` is valid. kInvalid: a claim names a figure that does not exist, or in a wrong unit.
kv::Result<Plan> MakePlan(const Scenario& scenario);

}  // namespace cairn::tools
