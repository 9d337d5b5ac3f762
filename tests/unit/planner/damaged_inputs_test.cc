// Damaged inputs of every kind are refused or skipped; none of them crashes or runs away.
#include <gtest/gtest.h>

#include "kvstore/base/random.h"
#include "tests/unit/planner/trace_files.h"
#include "tools/planner/commands.h"
#include "tools/planner/scenario_io.h"

namespace cairn::tools {
namespace {

constexpr int kRounds = 400;

// Flips, drops, repeats and inserts bytes, with a taste for what parsers trip over.
std::string Damage(std::string text, kv::Random& random) {
  static constexpr std::string_view kTeeth = "{}[]\",:-0123456789eE.\\ntf\0\xff#=";
  const uint64_t wounds = 1 + random.Below(4);
  for (uint64_t i = 0; i < wounds && !text.empty(); ++i) {
    const uint64_t at = random.Below(text.size());
    switch (random.Below(4)) {
      case 0:
        text[at] = kTeeth[random.Below(kTeeth.size())];
        break;
      case 1:
        text.erase(at, 1 + random.Below(9));
        break;
      case 2:
        text.insert(at, text.substr(at, random.Below(40)));
        break;
      default:
        text.insert(at, 1, kTeeth[random.Below(kTeeth.size())]);
        break;
    }
  }
  return text;
}

const char* const kTraces[] = {
    R"({"timestamp": 27, "input_length": 600, "output_length": 5, "hash_ids": [1, 2], "block_size": 512}
{"delay": 1e300, "input_tokens": 512, "hash_ids": [1], "session_id": "a"})",
    R"({"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 20, "output_length": 3, "hash_ids": [5]})",
    R"({"id": "a", "block_size": 64, "req": [[0.0, 130, 9, 0, 1.5, 0, [1, 2]], [4.0, 200, 9, 0, 1, 0, [1, 1, 7, 2]]]})",
    R"({"timestamp": 1, "request": {"model": "m", "tools": [{"name": "a"}], "messages": [{"role": "user", "content": "hi"}]}}
{"timestamp": 2, "session_id": "s", "input": "some text", "output": "x"})",
};

TEST(DamagedInputs, TracesAreReadOrRefused) {
  kv::Random random(11);
  for (const char* trace : kTraces) {
    for (int round = 0; round < kRounds; ++round) {
      const std::string path = WriteTrace("damaged.jsonl", Damage(trace, random));
      for (const char* verb : {"hits", "explain", "lint"}) {
        const CommandResult result = TraceCommand({verb, path});
        EXPECT_LE(result.exit_code, 1);
        EXPECT_TRUE(!result.output.empty() || !result.errors.empty());
      }
    }
  }
}

TEST(DamagedInputs, ScenariosAndModelsAreReadOrRefused) {
  kv::Random random(12);
  const std::string scenario =
      ReadFile(CAIRN_SOURCE_DIR "/docs/scenarios/deepseek-v41.toml").value();
  const std::string config =
      R"({"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
          "sliding_window": 128, "layer_types": ["full_attention", "sliding_attention",
          "full_attention", "sliding_attention"], "torch_dtype": "bfloat16"})";
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    const CommandResult result =
        PlanCommand({WriteTrace("damaged.toml", Damage(scenario, random)), "--json"});
    EXPECT_LE(result.exit_code, 1);
    if (!result.errors.empty()) ++refused;
    const auto layout = ParseModelConfig(Damage(config, random), "");
    if (layout.ok()) {
      EXPECT_GT(layout.value().BytesPerToken(), 0);
    }
  }
  EXPECT_GT(refused, kRounds / 10);
}

TEST(DamagedInputs, ADeepScenarioIsRefused) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  deep += "1" + std::string(100'000, '}');
  const CommandResult result = PlanCommand({WriteTrace("deep.json", deep)});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_LT(result.errors.size(), 300u);
}

}  // namespace
}  // namespace cairn::tools
