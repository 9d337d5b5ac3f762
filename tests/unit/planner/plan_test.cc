// The reference scenario gives back what was published; wrong inputs are refused with advice.
#include "tools/planner/plan.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/status_matchers.h"
#include "tests/unit/planner/trace_files.h"
#include "tools/planner/scenario_io.h"

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::IsOk;

constexpr char kReference[] = CAIRN_SOURCE_DIR "/docs/scenarios/deepseek-v41.toml";

Plan PlanOf(const std::vector<std::string>& settings = {}) {
  auto scenario = LoadScenario(kReference, settings);
  EXPECT_THAT(scenario, IsOk());
  auto plan = MakePlan(scenario.value());
  EXPECT_THAT(plan, IsOk());
  return std::move(plan).value();
}

TEST(DeepSeekScenario, ReproducesThePublishedFiguresWithinOnePercent) {
  const Plan plan = PlanOf();
  const std::pair<const char*, double> published[] = {
      {"money.per_gpu_hour", 38},
      {"money.hit_share", 0.199},
      {"money.miss_share", 0.414},
      {"money.output_share", 0.387},
      {"traffic.amplification", 25},
      {"gpu.count", 2'370},
      {"traffic.tokens_per_day", 155e12},
      {"store.logical_per_gpu", 14.4e12},
      {"cluster.servers", 183},
      {"kv.fetch_bytes", 65.8e6},
      {"gpu.requests", 19.5},
      {"window.snapshot_bytes", 1.495e6},
      {"money.margin_low", 1 - 3 / 38.0},
      {"money.margin_high", 1 - 7 / 38.0},
  };
  for (const auto& [figure, value] : published) {
    EXPECT_NEAR(plan.Value(figure), value, value / 100) << figure;
  }
  EXPECT_NEAR(plan.Value("retention.time") / 86'400, 5.06, 0.05);
  EXPECT_NEAR(plan.Value("window.per_box"), 84e9, 1e9);
}

TEST(DeepSeekScenario, SaysWhatDoesNotAddUp) {
  const Plan plan = PlanOf();
  EXPECT_TRUE(plan.ClaimsHold());
  int conflicts = 0;
  for (const ClaimCheck& check : plan.claims) {
    EXPECT_EQ(check.within, check.claim.adds_up) << check.claim.figure << " " << check.planned;
    if (!check.claim.adds_up) {
      ++conflicts;
      EXPECT_GT(check.claim.note.size(), 40u) << "a conflict is explained: " << check.claim.figure;
    }
  }
  EXPECT_EQ(conflicts, 6);
  EXPECT_FALSE(PlanOf({"price.hit=0.03"}).ClaimsHold());  // The check can fail.
}

TEST(Plan, TokensPerDayAndGpusAreTwoWaysToSayOneThing) {
  const Plan by_gpus = PlanOf({"traffic.tokens_per_day=0", "gpu.count=2370"});
  EXPECT_NEAR(by_gpus.Value("traffic.tokens_per_day"), 155e12, 155e10);
}

TEST(Plan, FollowsItsInputs) {
  const Plan base = PlanOf();
  const Plan wide = PlanOf({"store.data_shards=4"});
  EXPECT_NEAR(wide.Value("store.coded_bytes") / base.Value("store.coded_bytes"), 1.5 / 1.2, 1e-9);
  EXPECT_GT(wide.Value("wear.dwpd"), 0);
  const Plan llama = PlanOf({"model.name=Llama-3-70B"});
  EXPECT_NEAR(llama.Value("kv.read_per_prefill_gpu"), 472e9, 1e9);  // Why KV must be small.
  EXPECT_GT(llama.Value("store.servers"), 100 * base.Value("store.servers"));
  const Plan fast = PlanOf({"store.rebuild_share=0.4"});
  EXPECT_NEAR(fast.Value("rebuild.ssd_time") * 2, base.Value("rebuild.ssd_time"), 1e-6);
  const Plan no_hits = PlanOf({"traffic.hit_rate=0"});
  EXPECT_EQ(no_hits.Value("gpu.recompute_saved"), 0);
  EXPECT_GT(no_hits.Value("gpu.count"), 10 * base.Value("gpu.count"));
  const Plan fitted = PlanOf({"retention.logical_bytes_per_gpu=7.2 TB"});
  EXPECT_NEAR(fitted.Value("retention.time"), base.Value("retention.time") / 2, 3'600);
}

std::vector<double> FiguresOf(const Scenario& scenario) {
  std::vector<double> figures;
  const kv::Result<Plan> plan = MakePlan(scenario);
  for (const FigureGroup& group : plan.value().groups) {
    for (const Figure& figure : group.figures) figures.push_back(figure.value);
  }
  return figures;
}

// An input that changes nothing would be a promise that nobody keeps.
TEST(Plan, EveryFieldOfAScenarioMovesAFigure) {
  for (const ScenarioField& field : ScenarioFields()) {
    Scenario before = LoadScenario(kReference, {}).value();
    if (field.key == "gpu.count") before.tokens_per_day = 0;  // It is the one or the other.
    if (before.tokens_per_day == 0) before.gpus = 1'000;
    Scenario after = before;
    double& value = after.*field.member;
    value = value == 0 ? (field.min + 1) / 2 : value * 2 <= field.max ? value * 2 : value / 2;
    if (field.key == "traffic.peak_factor") value = 100;  // Else space decides, not peaks.
    after.rent_high = std::max(after.rent_high, after.rent_low);
    ASSERT_THAT(MakePlan(after), IsOk()) << field.key;
    EXPECT_NE(FiguresOf(before), FiguresOf(after)) << field.key;
  }
}

TEST(Plan, OutagesOfServersCountInAvailability) {
  const Plan base = PlanOf();
  EXPECT_NEAR(base.Value("failure.server_outages_per_year"), base.Value("store.servers") * 0.05,
              1e-9);
  EXPECT_NEAR(base.Value("failure.servers_out"), base.Value("store.servers") * 0.05 / 8'760, 1e-9);
  const Plan shaky = PlanOf({"failure.server_per_year=500 %", "failure.server_outage=10 h"});
  EXPECT_NEAR(shaky.Value("failure.servers_out"), base.Value("failure.servers_out") * 1'000, 1e-6);
  // Three at once: a thousand times as many out is a thousand million times as often unreadable.
  EXPECT_NEAR(base.Value("failure.readable_nines") - shaky.Value("failure.readable_nines"), 9, 0.5);
}

// What is overruled is told.
TEST(Plan, InputsThatAreNotUsedAreNamed) {
  EXPECT_THAT(PlanOf().notes, ::testing::IsEmpty());
  EXPECT_THAT(PlanOf({"gpu.count=16"}).notes,
              ElementsAre(HasSubstr("gpu.count = 16 is not used: traffic.tokens_per_day = 155 T")));
  EXPECT_THAT(PlanOf({"model.bytes_per_token=100 B"}).notes,
              ElementsAre(HasSubstr("is used instead of the 890 B")));
  EXPECT_THAT(PlanOf({"gpu.count=16", "traffic.tokens_per_day=0"}).notes, ::testing::IsEmpty());
}

TEST(Plan, EveryFigureIsFinite) {
  for (const FigureGroup& group : PlanOf({"traffic.output_tokens=0"}).groups) {
    for (const Figure& figure : group.figures)
      EXPECT_TRUE(std::isfinite(figure.value)) << figure.id;
  }
}

TEST(Scenario, RefusesWrongUnitsAndImpossibleValues) {
  const std::pair<const char*, const char*> broken[] = {
      {"store.ssd_bytes=30.73", "has no unit; a size is wanted"},
      {"store.ssd_bytes=40 GB/s", "wrong unit 'GB/s'; a size is wanted"},
      {"store.server_read=40 GB", "wrong unit 'GB'; a data rate is wanted"},
      {"retention.chat_ttl=7 days", "wrong unit 'days'"},
      {"traffic.hit_rate=96", "it must lie between"},
      {"traffic.hit_rate=many", "is no number"},
      {"traffic.input_tokens=0", "traffic.input_tokens is missing"},
      {"store.data_shards=2.5", "whole numbers"},
      {"store.data_shard=10", "store.data_shard is not known: its section has store.data_shards"},
      {"nonsense=1", "are the sections"},
      {"model.name=gpt-9", "no model 'gpt-9'"},
      {"gpu.rent_low=9", "exchange them"},
      {"traffic.tokens_per_day=0", "how much traffic?"},
      {"store.fill", "key=value"},
      {"claim.0.colour=red", "a claim has figure"},
      {"price.hit=nan", "is no number"},
  };
  for (const auto& [setting, complaint] : broken) {
    const auto scenario = LoadScenario(kReference, {setting});
    ASSERT_FALSE(scenario.ok()) << setting;
    EXPECT_THAT(scenario.status().message(), HasSubstr(complaint)) << setting;
  }
}

TEST(Scenario, ReadsJsonAsItReadsToml) {
  const std::string path = WriteTrace("scenario.json", R"({
    "name": "small", "model": {"name": "Llama-3-8B"},
    "traffic": {"input_tokens": "8 K", "output_tokens": 300, "hit_rate": 0.5},
    "gpu": {"prefill_rate": "20 K/s", "decode_rate": "3 K/s", "count": 2},
    "claim": [{"figure": "traffic.amplification", "value": 2}]})");
  const auto scenario = LoadScenario(path, {});
  ASSERT_THAT(scenario, IsOk());
  const auto plan = MakePlan(scenario.value());
  ASSERT_THAT(plan, IsOk());
  EXPECT_TRUE(plan.value().ClaimsHold());
  EXPECT_EQ(plan.value().Value("store.servers"), 12);  // A stripe of 10+2 needs twelve.
}

TEST(Scenario, FilesThatCannotBeAreNamed) {
  EXPECT_THAT(LoadScenario("/nowhere.toml", {}), HasCode(kv::Code::kNotFound));
  const auto broken = LoadScenario(WriteTrace("broken.toml", "name = \"x\"\n[store\n"), {});
  ASSERT_THAT(broken, HasCode(kv::Code::kInvalid));
  EXPECT_THAT(broken.status().message(), HasSubstr("broken.toml:2"));
  EXPECT_THAT(LoadScenario(WriteTrace("list.json", "[1]"), {}), HasCode(kv::Code::kInvalid));
  const std::string claim = WriteTrace("claim.toml", "[[claim]]\nfigure = \"none\"\nvalue = 1\n");
  const auto settings =
      std::vector<std::string>{"model.bytes_per_token=100 B", "traffic.input_tokens=1000",
                               "gpu.prefill_rate=1 K/s", "gpu.decode_rate=1 K/s", "gpu.count=4"};
  const auto scenario = LoadScenario(claim, settings);
  ASSERT_THAT(scenario, IsOk());
  EXPECT_THAT(MakePlan(scenario.value()), HasCode(kv::Code::kInvalid));
}

TEST(Quantity, ReadsAndWritesUnits) {
  EXPECT_DOUBLE_EQ(ParseQuantity("100 PiB", Unit::kBytes).value(), 112'589'990'684'262'400);
  EXPECT_DOUBLE_EQ(ParseQuantity("400 Gb/s", Unit::kBytesPerSecond).value(), 50e9);
  EXPECT_DOUBLE_EQ(ParseQuantity(" 1.5M/s ", Unit::kTokensPerSecond).value(), 1.5e6);
  EXPECT_DOUBLE_EQ(ParseQuantity("2 w", Unit::kSeconds).value(), 14 * 86'400);
  EXPECT_EQ(FormatQuantity(30.73e12, Unit::kBytes), "30.73 TB");
  EXPECT_EQ(FormatQuantity(1.2816e9, Unit::kBytesPerSecond), "1.28 GB/s");
  EXPECT_EQ(FormatQuantity(5.06 * 86'400, Unit::kSeconds), "5.06 d");
  EXPECT_EQ(FormatQuantity(0.0496, Unit::kShare), "5.0 %");
  EXPECT_EQ(WithCommas(-1234567.89, 1), "-1,234,567.9");
  EXPECT_EQ(WithCommas(999, 0), "999");
}

}  // namespace
}  // namespace cairn::tools
