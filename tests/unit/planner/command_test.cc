// The commands as people type them: what they print, how they fail, and that the guide tells the
// truth.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/planner/trace_files.h"
#include "tools/planner/commands.h"
#include "tools/planner/plot.h"
#include "tools/planner/scenario_io.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRoot = CAIRN_SOURCE_DIR;
const std::string kScenario = kRoot + "/docs/scenarios/deepseek-v41.toml";
const std::string kTrace = kRoot + "/docs/guides/data/agents.jsonl";

std::string Contents(const std::string& path) { return ReadFile(path).value(); }

TEST(PlanCommand, PrintsTextJsonAndAPage) {
  const std::string page = OwnFile("plan.html");
  const CommandResult text = PlanCommand({kScenario, "--html", page});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("Does not add up"));
  EXPECT_THAT(Contents(page), HasSubstr("</svg>"));
  EXPECT_THAT(Contents(page), Not(HasSubstr("nan")));
  const CommandResult json = PlanCommand({kScenario, "--json"});
  EXPECT_THAT(json.output, HasSubstr("\"claims_hold\": true"));
}

TEST(PlanCommand, FailsWhenAClaimNoLongerHolds) {
  const CommandResult result = PlanCommand({kScenario, "--set", "traffic.hit_rate=90 %"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("UNEXPECTED"));
}

TEST(PlanCommand, TellsWhatIsOverruled) {
  const std::string page = OwnFile("overruled.html");
  const std::vector<std::string> twice = {kScenario, "--set", "gpu.count=16", "--html", page};
  EXPECT_THAT(PlanCommand(twice).output, HasSubstr("Note: gpu.count = 16 is not used"));
  EXPECT_THAT(Contents(page), HasSubstr("gpu.count = 16 is not used"));
  EXPECT_THAT(PlanCommand({kScenario, "--set", "gpu.count=16", "--json"}).output,
              HasSubstr("gpu.count = 16 is not used"));
}

TEST(PlanCommand, TakesTrafficFromATrace) {
  const CommandResult result =
      PlanCommand({"--trace", kTrace, "--set", "model.name=Llama-3-8B", "--set", "gpu.count=16",
                   "--set", "gpu.prefill_rate=20 K/s", "--set", "gpu.decode_rate=3 K/s"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("cannot show what they are worth"));
  EXPECT_THAT(result.output, HasSubstr("KV bytes per token"));
  EXPECT_THAT(result.output, HasSubstr("LRU hit rate"));
}

// What keeps the KV of 30 minutes for the traffic of 16 GPUs, counted once more by hand.
TEST(PlanCommand, ComparesTheTtlsAndCapacitiesOfATrace) {
  const std::string page = OwnFile("trace_plan.html");
  const CommandResult result = PlanCommand(
      {"--trace", kTrace, "--set", "model.name=Llama-3-8B", "--set", "gpu.count=16", "--set",
       "gpu.prefill_rate=20 K/s", "--set", "gpu.decode_rate=3 K/s", "--json", "--html", page});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  const auto json = nlohmann::json::parse(result.output)["trace"];
  const auto at_ttl = [&](double seconds) {
    for (const auto& row : json["ttl"]) {
      if (row["ttl_s"] == seconds) return row;
    }
    return nlohmann::json();
  };
  const auto half_hour = at_ttl(1'800);
  const double prompt = 16'802.12, answer = 452.9;  // Means of the trace.
  const double hit_rate = 0.82593, kept_per_rate = 8.62e6;
  const double rate = 16 / (prompt * (1 - hit_rate) / 20e3 + answer / 3e3);
  EXPECT_NEAR(half_hour["hit_rate"].get<double>(), hit_rate, 1e-5);
  EXPECT_NEAR(half_hour["tokens"].get<double>() / (kept_per_rate * rate), 1, 0.01);
  EXPECT_NEAR(half_hour["raw_bytes"].get<double>() / (kept_per_rate * rate * 131'072 * 1.2 / 0.9),
              1, 0.01);
  EXPECT_NEAR(half_hour["gpus_saved"].get<double>() / (rate * prompt * hit_rate / 20e3), 1, 0.01);
  EXPECT_FALSE(half_hour["beyond_span"].get<bool>());
  EXPECT_TRUE(at_ttl(86'400)["beyond_span"].get<bool>());
  EXPECT_LT(at_ttl(60)["hit_rate"].get<double>(), half_hour["hit_rate"].get<double>());
  const auto largest = json["capacity"].back();
  EXPECT_NEAR(largest["hit_rate"].get<double>(), json["ideal"].get<double>(), 1e-9);
  const double trace_rate = 334 / (4.03 * 3'600);
  EXPECT_NEAR(largest["tokens"].get<double>() / (1'048'576 * rate / trace_rate), 1, 0.01);
  EXPECT_THAT(Contents(page), HasSubstr("Hit rate by SSD bytes"));
  EXPECT_THAT(Contents(page), Not(HasSubstr("nan")));
}

TEST(PlanCommand, BrokenLinesOfATraceAreToldOrRefused) {
  const std::string trace = OwnFile("broken_for_plan.jsonl");
  std::ofstream(trace) << Contents(kTrace) << "{not json\n";
  std::vector<std::string> arguments = {
      "--trace", trace, "--set", "model.name=Llama-3-8B", "--set", "gpu.count=16",
      "--set", "gpu.prefill_rate=20 K/s", "--set", "gpu.decode_rate=3 K/s"};
  const CommandResult told = PlanCommand(arguments);
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.errors, HasSubstr("1 broken lines were skipped"));
  arguments.push_back("--strict");
  EXPECT_EQ(PlanCommand(arguments).exit_code, 1);
}

TEST(Commands, PrintJsonOfEverything) {
  const auto json = [](const CommandResult& told) { return nlohmann::json::parse(told.output); };
  const auto failures = json(PlanCommand({"failures", "10+2", "2x", "--cycles", "1000", "--json"}));
  EXPECT_EQ(failures["codes"][0]["code"], "10+2");
  EXPECT_GT(failures["codes"][1]["monte_carlo"]["unavailable_share"], 0.0);
  const auto models = json(PlanCommand({"models", "--json"}));
  EXPECT_GT(models["models"].size(), 10u);
  EXPECT_GT(models["models"][0]["bytes_per_token"], 0.0);
  const auto reasons = json(TraceCommand({"explain", kTrace, "--ttl", "20 min", "--json"}));
  double missed = 0;
  for (const auto& row : reasons["reasons"]) missed += row["missed_tokens"].get<double>();
  EXPECT_EQ(missed, reasons["input_tokens"].get<double>() - reasons["hit_tokens"].get<double>());
  const std::string log = kRoot + "/docs/guides/data/requests.jsonl";
  const auto line = json(TraceCommand({"explain", log, "--line", "2", "--json"}));
  EXPECT_EQ(line["text"]["part"], "messages[0].system");
  EXPECT_EQ(line["text"]["earlier_line"], 1);
  const CommandResult linted = TraceCommand({"lint", log, "--json"});
  EXPECT_EQ(linted.exit_code, 1);
  EXPECT_EQ(json(linted)["findings"][0]["rule"], "json-key-order");
}

void ExpectSelfContained(const std::string& page) {
  const std::string text = Contents(page);
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
  EXPECT_THAT(text, HasSubstr("</html>"));
  for (const char* forbidden : {"<script", "<img", "<link", "url(", "src=\"", "nan", "inf\""}) {
    EXPECT_THAT(text, Not(HasSubstr(forbidden))) << page;
  }
}

TEST(Commands, DrawPagesOfEverything) {
  const std::string page = OwnFile("page.html");
  EXPECT_EQ(PlanCommand({"failures", "10+2", "3x", "--cycles", "1000", "--html", page}).errors, "");
  ExpectSelfContained(page);
  EXPECT_THAT(Contents(page), HasSubstr("Availability of a block, nines"));
  EXPECT_THAT(Contents(page), HasSubstr(">3 copies</text>"));
  EXPECT_EQ(PlanCommand({"models", "--block-tokens", "64", "--html", page}).errors, "");
  ExpectSelfContained(page);
  EXPECT_THAT(Contents(page), HasSubstr("<td class=\"number\">56,960</td>"));  // V4.1, 64 tokens.
  EXPECT_THAT(Contents(page), HasSubstr("A block is of 64 tokens"));
  EXPECT_EQ(PlanCommand({"models", "--html", "/nowhere/page.html"}).exit_code, 1);
  EXPECT_EQ(TraceCommand({"explain", kTrace, "--ttl", "20 min", "--html", page}).errors, "");
  ExpectSelfContained(page);
  EXPECT_THAT(Contents(page), HasSubstr(">expired</text>"));
  EXPECT_THAT(Contents(page), HasSubstr("<td>expired</td>"));
  const std::string log = kRoot + "/docs/guides/data/requests.jsonl";
  EXPECT_EQ(TraceCommand({"lint", log, "--html", page}).exit_code, 1);
  ExpectSelfContained(page);
  EXPECT_THAT(Contents(page), HasSubstr(">json-key-order</text>"));
  EXPECT_EQ(TraceCommand({"lint", log, "--html", "/nowhere/page.html"}).exit_code, 1);
}

TEST(Commands, DrawModelsFromTheHungriestToTheThriftiest) {
  const std::string page = OwnFile("models.html");
  ASSERT_EQ(PlanCommand({"models", "--html", page}).exit_code, 0);
  const std::string text = Contents(page);
  const std::string windows = text.substr(text.find("Bytes of one snapshot of the windows"));
  const std::string tokens = text.substr(0, text.size() - windows.size());
  const auto bar = [](const char* model) { return ">" + std::string(model) + "</text>"; };
  EXPECT_LT(tokens.find(bar("Llama-3.1-405B")), tokens.find(bar("Llama-3-8B")));
  EXPECT_LT(tokens.find(bar("Llama-3-8B")), tokens.find(bar("DeepSeek-V4.1-Flash")));
  EXPECT_THAT(tokens, HasSubstr(">3,514.25</text>"));
  EXPECT_LT(windows.find(bar("Gemma-3-27B")), windows.find(bar("DeepSeek-V4.1-Flash")));
  EXPECT_THAT(windows, Not(HasSubstr(bar("Llama-3-8B"))));  // It has none.
}

TEST(Commands, DrawTheModelOfAConfigurationWhateverItIsCalled) {
  const std::string config = WriteTrace(
      "<b>&.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
      "num_key_value_heads": 8, "torch_dtype": "bfloat16"})");
  const std::string page = OwnFile("config.html");
  EXPECT_EQ(PlanCommand({"models", "--config", config, "--html", page}).errors, "");
  ExpectSelfContained(page);
  EXPECT_THAT(Contents(page), HasSubstr(">131,072</text>"));
  EXPECT_THAT(Contents(page), HasSubstr("&lt;b&gt;&amp;.json"));
  EXPECT_THAT(Contents(page), Not(HasSubstr("windows")));
}

// Whoever writes a prompt writes into these pages.
TEST(Commands, PagesHoldPromptsWithoutRunningThem) {
  const std::string path = WriteTrace(
      "hostile.jsonl",
      R"({"timestamp": 1, "session_id": "s", "system": "Be <script>alert(1)</script>", "input": "a"}
{"timestamp": 2, "session_id": "s", "system": "Be <img src=\"x\" onerror=\"y\">", "input": "a"}
)");
  const std::string page = OwnFile("hostile.html");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"lint", path}, {"explain", path, "--line", "2"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--html", page});
    TraceCommand(arguments);
    ExpectSelfContained(page);
    EXPECT_THAT(Contents(page), HasSubstr("&lt;img src")) << command[0];
    EXPECT_THAT(Contents(page), HasSubstr("&lt;script&gt;")) << command[0];
  }
}

TEST(TraceCommand, ExplainsWhatATraceWithoutSessionsCanTell) {
  const std::string path = WriteTrace(
      "mooncake.jsonl", R"({"timestamp": 0, "input_length": 1536, "hash_ids": [1, 2, 3]}
{"timestamp": 4000, "input_length": 1536, "hash_ids": [1, 2, 9]}
)");
  EXPECT_THAT(TraceCommand({"explain", path, "--line", "2"}).output,
              HasSubstr("first miss at block 2 (token 1024): leaves another prompt, its beginning "
                        "last seen on line 1 4 s before (the trace names no session"));
  const auto json =
      nlohmann::json::parse(TraceCommand({"explain", path, "--line", "2", "--json"}).output);
  EXPECT_EQ(json["last_seen_line"], 1);
  EXPECT_EQ(json["last_seen_ms_before"], 4'000);
}

TEST(Commands, WrongUsageIsTwoAndWrongInputIsOne) {
  EXPECT_EQ(PlanCommand({"--nonsense"}).exit_code, 2);
  EXPECT_EQ(PlanCommand({"--help"}).exit_code, 0);
  EXPECT_EQ(TraceCommand({}).exit_code, 2);
  EXPECT_EQ(TraceCommand({"hits"}).exit_code, 2);
  const CommandResult missing = PlanCommand({"/nowhere.toml"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.errors, HasSubstr("cannot read /nowhere.toml"));
  EXPECT_THAT(TraceCommand({"hits", kTrace, "--ttl", "5"}).errors, HasSubstr("has no unit"));
  EXPECT_THAT(TraceCommand({"hits", kTrace, "--model", "x"}).errors, HasSubstr("no model 'x'"));
  EXPECT_THAT(PlanCommand({"failures", "7"}).errors, HasSubstr("'7' is no code"));
  EXPECT_THAT(TraceCommand({"lint", kTrace}).errors, HasSubstr("not block ids"));
  EXPECT_THAT(TraceCommand({"explain", kTrace, "--line", "9999"}).errors, HasSubstr("line 9999"));
  EXPECT_THAT(TraceCommand({"explain", kTrace, "--capacity", "100"}).errors, HasSubstr("no block"));
  EXPECT_THAT(PlanCommand({"failures", "--failures-per-year", "inf"}).errors,
              HasSubstr("no number"));
  EXPECT_THAT(PlanCommand({"failures", "--outage", "-1 h"}).errors, HasSubstr("not below it"));
  EXPECT_THAT(PlanCommand({"failures", "--cycles", "18446744073709551615"}).errors,
              HasSubstr("100 M"));
  EXPECT_EQ(PlanCommand({"models", "--block-tokens", "0"}).exit_code, 2);
  EXPECT_THAT(PlanCommand({"models", "--dtype", "fp8"}).errors, HasSubstr("in --config"));
  EXPECT_EQ(PlanCommand({"--set", "store.fill=90 %", kScenario}).errors, "");
}

TEST(TraceCommand, BrokenLinesAreShownOrRefused) {
  const std::string path = WriteTrace("half.jsonl", Contents(kTrace) + "oops\n");
  const CommandResult skipped = TraceCommand({"hits", path});
  EXPECT_EQ(skipped.exit_code, 0);
  EXPECT_THAT(skipped.output, HasSubstr("1 broken lines were skipped"));
  const CommandResult refused = TraceCommand({"hits", path, "--strict"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("is not a JSON object"));
  EXPECT_THAT(TraceCommand({"explain", path}).errors, HasSubstr("is not a JSON object"));
}

TEST(TraceCommand, TimesThatRunBackAreShownOrRefused) {
  const std::string path = WriteTrace(
      "back.jsonl",
      Contents(kTrace) + R"({"timestamp": 5, "input_length": 10, "hash_ids": [0]})" + "\n");
  EXPECT_THAT(TraceCommand({"hits", path}).output, HasSubstr("1 lines without a time, or with"));
  EXPECT_THAT(TraceCommand({"hits", path, "--json"}).output, HasSubstr("\"lines_retimed\": 1"));
  EXPECT_THAT(TraceCommand({"explain", path}).errors, HasSubstr("line 335: its time runs back"));
  EXPECT_EQ(TraceCommand({"hits", path, "--strict"}).exit_code, 1);
}

TEST(TraceCommand, ConvertsSamplesAndAnonymises) {
  const std::string out = OwnFile("converted.jsonl");
  const std::string key = WriteTrace("key", "a key of twenty-two b.\n");
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--anonymise", key}, {"--to", "bailian"}, {"--copies", "2"}}) {
    std::vector<std::string> arguments = {"convert", kTrace, "-o", out};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const CommandResult converted = TraceCommand(arguments);
    ASSERT_EQ(converted.exit_code, 0) << converted.errors;
    const auto ideal = [](const std::string& path) {
      const std::string json = TraceCommand({"hits", path, "--json"}).output;
      return json.substr(json.find("\"ideal\""), 16);
    };
    EXPECT_EQ(ideal(out), ideal(kTrace)) << flags[0];
  }
}

TEST(TraceCommand, ConvertingATraceInPlaceKeepsItAndAFailureLeavesNothing) {
  const std::string path = WriteTrace("in-place.jsonl", Contents(kTrace));
  ASSERT_EQ(TraceCommand({"convert", path, "-o", path}).exit_code, 0);
  const std::string once = Contents(path);
  EXPECT_EQ(std::count(once.begin(), once.end(), '\n'), 334);
  const std::string broken = WriteTrace("broken.jsonl", Contents(kTrace) + "oops\n");
  const std::string out = OwnFile("out.jsonl");
  EXPECT_EQ(TraceCommand({"convert", broken, "-o", out, "--strict"}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
}

TEST(PlanCommand, WithoutPricesThereAreNoMargins) {
  const std::string page = OwnFile("free.html");
  const CommandResult result =
      PlanCommand({"--set", "model.name=Llama-3-8B", "--set", "gpu.count=16", "--set",
                   "gpu.prefill_rate=20 K/s", "--set", "gpu.decode_rate=3 K/s", "--set",
                   "traffic.input_tokens=1000", "--set", "traffic.hit_rate=0.5", "--html", page});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("Price of the store"));
  EXPECT_THAT(result.output, Not(HasSubstr("Margin")));
}

TEST(Plots, EscapeTextAndSurviveEmptyData) {
  const std::string svg = LineSvg({.title = "a < b & c",
                                   .x_title = "x",
                                   .y_title = "y",
                                   .x_ticks = {{1, "one"}},
                                   .series = {{"none", {}}, {"one", {{5, 0.5}}}}});
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(BarSvg("t", {{"zero", 0, "0"}}), HasSubstr("width=\"0.0\""));
  EXPECT_EQ(EscapeHtml("\"<&>"), "&quot;&lt;&amp;&gt;");
}

// Words as a shell would split them; single quotes hold one together.
std::vector<std::string> Words(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
      if (!open) words.emplace_back();
      open = true;
    } else if (c == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  return words;
}

// Every "$ cairn ..." of the guide's console blocks is run; what follows it is what it must print.
// CAIRN_UPDATE_GUIDE=1 writes the guide anew instead.
TEST(Guide, ExamplesPrintWhatTheGuideSays) {
  const std::string path = kRoot + "/docs/guides/planner.md";
  std::filesystem::current_path(kRoot);  // The guide's commands are typed there.
  std::istringstream guide(Contents(path));
  std::string line, fresh;
  bool inside = false;
  bool answered = false;  // Lines that follow a command in its block are the old answer.
  int examples = 0;
  while (std::getline(guide, line)) {
    if (line.starts_with("```")) {
      inside = line == "```console";
      answered = false;
    }
    const bool command = inside && line.starts_with("$ cairn ");
    if (command || !answered) fresh += line + "\n";
    if (!command) continue;
    ++examples;
    answered = true;
    std::vector<std::string> words = Words(line.substr(8));
    const std::string verb = words[0];
    words.erase(words.begin());
    const CommandResult result = verb == "plan" ? PlanCommand(words) : TraceCommand(words);
    EXPECT_EQ(result.errors, "") << line;
    fresh += result.output;
  }
  EXPECT_GE(examples, 8);
  if (std::getenv("CAIRN_UPDATE_GUIDE") != nullptr) {
    std::ofstream(path) << fresh;
  } else {
    EXPECT_EQ(fresh, Contents(path))
        << "run this test with CAIRN_UPDATE_GUIDE=1 and read the changes";
  }
}

}  // namespace
}  // namespace cairn::tools
