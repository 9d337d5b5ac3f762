// Flattens TOML, JSON and flags into "section.key" pairs, which the table of fields then reads.
#include "tools/planner/scenario_io.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "kvstore/layout/known_models.h"
#include "kvstore/toml/toml_settings.h"

namespace cairn::tools {
namespace {

using nlohmann::json;
// "store.fill" -> "0.9"; elements of lists are "claim.0.figure".
using Pairs = std::map<std::string, std::string>;

constexpr int kDepthMax = 8;

kv::Status Invalid(std::string message) { return {kv::Code::kInvalid, std::move(message)}; }

// `depth` levels more; false when there are more than these.
bool Flatten(const json& value, const std::string& key, int depth, Pairs& pairs) {
  if (!value.is_object() && !value.is_array()) {
    pairs[key] = value.is_string() ? value.get<std::string>() : value.dump();
    return true;
  }
  if (depth == 0) return false;
  size_t index = 0;
  for (const auto& [name, inner] : value.items()) {
    const std::string part = value.is_array() ? std::to_string(index++) : name;
    if (!Flatten(inner, key.empty() ? part : key + "." + part, depth - 1, pairs)) return false;
  }
  return true;
}

void Add(const std::vector<kv::TomlSetting>& settings, Pairs& pairs) {
  using Kind = kv::TomlSetting::Kind;
  for (const kv::TomlSetting& setting : settings) {
    if (setting.kind == Kind::kTable || setting.kind == Kind::kList) continue;
    // No field takes a date: the reader will say so.
    pairs[setting.key] = setting.kind == Kind::kOther ? "(a date)" : setting.value;
  }
}

kv::Result<Pairs> ReadPairs(const std::string& path) {
  Pairs pairs;
  if (path.empty()) return pairs;
  KV_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  if (path.ends_with(".json")) {
    const json document = json::parse(text, nullptr, false);
    if (!document.is_object()) return Invalid(path + " is not a JSON object");
    if (!Flatten(document, "", kDepthMax, pairs)) {
      return Invalid(path + " is nested more deeply than any scenario");
    }
  } else if (path.ends_with(".toml")) {
    KV_ASSIGN_OR_RETURN(const std::vector<kv::TomlSetting> settings, kv::ReadToml(text, path));
    Add(settings, pairs);
  } else {
    return Invalid("a scenario ends in .toml or .json: " + path);
  }
  return pairs;
}

kv::Status ApplyClaim(const std::string& key, const std::string& value, Scenario& scenario) {
  size_t index = 0;
  size_t at = key.find('.') + 1;
  for (; at < key.size() && key[at] >= '0' && key[at] <= '9'; ++at) {
    index = std::min<size_t>(index * 10 + static_cast<size_t>(key[at] - '0'), 999);
  }
  if (scenario.claims.size() <= index) scenario.claims.resize(index + 1);
  Claim& claim = scenario.claims[index];
  const std::string name = key.substr(std::min(key.size(), at + 1));
  if (name == "figure")
    claim.figure = value;
  else if (name == "value")
    claim.value = value;
  else if (name == "note")
    claim.note = value;
  else if (name == "adds_up")
    claim.adds_up = value != "false";
  else if (name == "within") {
    KV_ASSIGN_OR_RETURN(claim.within, ParseQuantity(value, Unit::kShare));
  } else {
    return Invalid(key + " is not known: a claim has figure, value, within, note and adds_up");
  }
  return kv::Status();
}

// Keys that begin as the unknown one does, to set a typing error right.
std::string Neighbours(const std::string& key) {
  std::string names;
  const std::string section = key.substr(0, key.find('.') + 1);
  for (const ScenarioField& field : ScenarioFields()) {
    if (section.empty() || !field.key.starts_with(section)) continue;
    names += (names.empty() ? "" : ", ") + std::string(field.key);
  }
  return names.empty()
             ? "model, traffic, gpu, retention, store, window, price, cost, failure are the "
               "sections"
             : "its section has " + names;
}

kv::Status Apply(const std::string& key, const std::string& value, Scenario& scenario) {
  if (key == "name")
    scenario.name = value;
  else if (key == "model.name")
    scenario.model = value;
  else if (key == "model.config")
    scenario.model_config = value;
  else if (key == "price.currency")
    scenario.currency = value;
  else if (key.starts_with("claim."))
    return ApplyClaim(key, value, scenario);
  else {
    for (const ScenarioField& field : ScenarioFields()) {
      if (field.key != key) continue;
      auto number = ParseQuantity(value, field.unit);
      if (!number.ok()) return Invalid(key + ": " + number.status().message());
      scenario.*field.member = number.value();
      return kv::Status();
    }
    return Invalid(fmt::format("{} is not known: {}", key, Neighbours(key)));
  }
  return kv::Status();
}

kv::Status ResolveModel(const std::string& path, Scenario& scenario) {
  if (!scenario.model_config.empty()) {
    const size_t slash = path.rfind('/');
    const bool relative = scenario.model_config[0] != '/' && slash != std::string::npos;
    const std::string file = (relative ? path.substr(0, slash + 1) : "") + scenario.model_config;
    KV_ASSIGN_OR_RETURN(scenario.layout, LoadModelConfig(file, ""));
  } else if (!scenario.model.empty()) {
    auto layout = kv::FindModel(scenario.model);
    if (layout.ok()) {
      scenario.layout = std::move(layout).value();
    } else if (scenario.bytes_per_token == 0) {
      return layout.status();
    }
  }
  return kv::Status();
}

}  // namespace

kv::Result<Scenario> LoadScenario(const std::string& path,
                                  const std::vector<std::string>& settings) {
  KV_ASSIGN_OR_RETURN(Pairs pairs, ReadPairs(path));
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Invalid("--set takes key=value, such as --set store.fill=0.8, not '" + setting + "'");
    }
    pairs[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  Scenario scenario;
  for (const auto& [key, value] : pairs) KV_RETURN_IF_ERROR(Apply(key, value, scenario));
  KV_RETURN_IF_ERROR(ResolveModel(path, scenario));
  KV_RETURN_IF_ERROR(Validate(scenario));
  return scenario;
}

}  // namespace cairn::tools
