// The flags of `cairn trace`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "kvstore/layout/known_models.h"
#include "tools/planner/command_support.h"
#include "tools/planner/explain.h"
#include "tools/planner/lint.h"
#include "tools/planner/plot.h"
#include "tools/planner/quantity.h"
#include "tools/planner/scenario_io.h"
#include "tools/planner/table.h"
#include "tools/planner/trace_report.h"
#include "tools/trace/trace_writer.h"
#include "tools/trace/transform.h"

namespace cairn::tools {
namespace {

// A century: longer times are a slip of the unit.
constexpr double kLongestSeconds = 100.0 * 365 * 86'400;

kv::Result<int64_t> Milliseconds(const std::string& text) {
  KV_ASSIGN_OR_RETURN(const double seconds, ParseQuantity(text, Unit::kSeconds));
  if (seconds >= 0 && seconds <= kLongestSeconds) return std::llround(seconds * 1e3);
  return kv::Status(kv::Code::kInvalid, "'" + text + "' is not between 0 s and a century");
}

kv::Result<uint64_t> TokenCount(const std::string& text) {
  KV_ASSIGN_OR_RETURN(const double tokens, ParseQuantity(text, Unit::kTokens));
  if (tokens >= 0 && tokens <= 1e18) return static_cast<uint64_t>(tokens);
  return kv::Status(kv::Code::kInvalid, "'" + text + "' is no sensible number of tokens");
}

// Flags as typed; every command on a trace has them.
struct InputFlags {
  std::string path;
  std::string format = "auto";
  bool strict = false;
  uint64_t block_tokens = 0;
  std::string spread = "0 s";
  uint64_t seed = 1;

  void AddTo(CLI::App& command) {
    command.add_option("trace", path, "The file, plain or gzip")->required();
    command.add_option("--format", format, "auto, mooncake, bailian, sessions or text");
    command.add_flag("--strict", strict, "Refuse broken lines instead of counting them");
    command.add_option("--block-tokens", block_tokens, "Join blocks to this size");
    command.add_option("--spread", spread, "Sessions start at random points of this span");
    command.add_option("--seed", seed, "Of everything random");
  }

  kv::Result<TraceOptions> Options() const {
    TraceOptions options;
    KV_ASSIGN_OR_RETURN(options.format, ParseTraceFormat(format));
    KV_ASSIGN_OR_RETURN(options.spread_ms, Milliseconds(spread));
    options.broken_lines = strict ? BrokenLines::kRefuse : BrokenLines::kSkip;
    options.block_tokens = block_tokens;
    options.seed = seed;
    return options;
  }
};

struct HitFlags {
  InputFlags input;
  std::vector<std::string> ttls;
  std::vector<std::string> capacities;
  std::string model = "DeepSeek-V4.1-Flash";
  bool policies = false;
  bool json = false;
  bool rate = false;
  std::string html;
};

kv::Status RunHits(const HitFlags& flags, CommandResult& result) {
  TraceReportOptions options;
  KV_ASSIGN_OR_RETURN(options.trace, flags.input.Options());
  KV_ASSIGN_OR_RETURN(const kv::KvLayout layout, kv::FindModel(flags.model));
  options.bytes_per_token = layout.BytesPerToken();
  options.policies = flags.policies;
  for (const std::string& text : flags.ttls) {
    KV_ASSIGN_OR_RETURN(const int64_t ttl_ms, Milliseconds(text));
    options.ttls_ms.push_back(ttl_ms);
  }
  std::sort(options.ttls_ms.begin(), options.ttls_ms.end());
  for (const std::string& text : flags.capacities) {
    KV_ASSIGN_OR_RETURN(const uint64_t tokens, TokenCount(text));
    options.capacities_tokens.push_back(tokens);
  }
  KV_ASSIGN_OR_RETURN(const TraceReport report, ReportTrace(flags.input.path, options));
  result.output = flags.json ? TraceJson(report) : TraceText(report, options.bytes_per_token);
  if (flags.rate) {
    result.errors += fmt::format("{:.2f} M block touches/s ({} in {:.2f} s, parsing included)\n",
                                 static_cast<double>(report.touches) / report.seconds / 1e6,
                                 report.touches, report.seconds);
  }
  if (flags.html.empty()) return kv::Status();
  return WriteTextFile(flags.html, TraceHtml(report, flags.input.path, options.bytes_per_token));
}

struct ConvertFlags {
  InputFlags input;
  std::string output;
  std::string to = "mooncake";
  SampleOptions sample;
  ScaleOptions scale;
  std::string key_file;
};

kv::Result<std::unique_ptr<TraceSource>> Transformed(const ConvertFlags& flags) {
  KV_ASSIGN_OR_RETURN(const TraceOptions options, flags.input.Options());
  KV_ASSIGN_OR_RETURN(std::unique_ptr<TraceSource> source, OpenTrace(flags.input.path, options));
  if (flags.sample.share != 1) {
    KV_ASSIGN_OR_RETURN(source, Sample(std::move(source), flags.sample));
  }
  if (flags.scale.copies != 1 || flags.scale.time_scale != 1) {
    KV_ASSIGN_OR_RETURN(source, Scale(std::move(source), flags.scale));
  }
  if (!flags.key_file.empty()) {
    KV_ASSIGN_OR_RETURN(std::string key, ReadFile(flags.key_file));
    while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
    KV_ASSIGN_OR_RETURN(source, Anonymise(std::move(source), std::move(key)));
  }
  return source;
}

// A file that takes its name when it is whole: it may replace the one that is read, and what fails
// leaves nothing. A pipe or a device is written as it is.
class Output {
 public:
  static kv::Result<Output> Create(const std::string& name) {
    Output output;
    std::error_code missing;  // Then it is made.
    const auto kind = std::filesystem::status(name, missing).type();
    const bool is_file = kind == std::filesystem::file_type::regular ||
                         kind == std::filesystem::file_type::not_found;
    // Behind a link, the file is replaced, and the link stays.
    output.name_ = is_file ? std::filesystem::weakly_canonical(name, missing).string() : name;
    output.path_ = is_file ? output.name_ + ".partial" : name;
    output.file_.reset(std::fopen(output.path_.c_str(), "wb"));
    if (output.file_ == nullptr) return kv::Status(kv::Code::kInvalid, "cannot write " + name);
    return output;
  }
  Output(Output&&) = default;
  ~Output() {
    if (file_ != nullptr) Discard();
  }

  kv::Status Write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size()) return kv::Status();
    return {kv::Code::kNoSpace, "cannot finish writing " + name_};
  }
  kv::Status Finish() {
    if (std::fclose(file_.release()) != 0) {
      Discard();
      return {kv::Code::kNoSpace, "cannot finish writing " + name_};
    }
    if (path_ == name_ || std::rename(path_.c_str(), name_.c_str()) == 0) return kv::Status();
    Discard();
    return {kv::Code::kInvalid, "cannot replace " + name_};
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  Output() = default;
  void Discard() {
    std::error_code gone;
    if (path_ != name_) std::filesystem::remove(path_, gone);
  }

  std::string name_;
  std::string path_;  // Of what is written until it is whole.
  std::unique_ptr<std::FILE, Close> file_;
};

kv::Status RunConvert(ConvertFlags flags, CommandResult& result) {
  if (flags.to != "mooncake" && flags.to != "bailian") {
    return {kv::Code::kInvalid,
            "traces are written as mooncake or bailian, not '" + flags.to + "'"};
  }
  flags.sample.seed = flags.scale.seed = flags.input.seed;
  KV_ASSIGN_OR_RETURN(std::unique_ptr<TraceSource> source, Transformed(flags));
  KV_ASSIGN_OR_RETURN(Output output, Output::Create(flags.output));
  std::unordered_map<uint64_t, uint64_t> turns;
  Request request;
  uint64_t written = 0;
  kv::Status status;
  while (status.ok()) {
    const kv::Result<bool> more = source->Next(request);
    if (!more.ok()) status = more.status();
    if (!more.ok() || !more.value()) break;
    const std::string line = flags.to == "mooncake" ? MooncakeLine(request, source->block_tokens())
                                                    : BailianLine(request, source->block_tokens(),
                                                                  ++turns[request.session]);
    status = output.Write(line);
    ++written;
  }
  KV_RETURN_IF_ERROR(status);
  KV_RETURN_IF_ERROR(output.Finish());
  result.output = fmt::format("{} requests written, {} broken lines skipped\n", written,
                              source->issues().lines_skipped);
  result.errors += IssuesText(source->issues());
  return kv::Status();
}

struct ExplainFlags {
  InputFlags input;
  std::string ttl = "0 s";
  std::string capacity = "0";
  uint64_t line = 0;
  bool json = false;
  std::string html;
};

struct LintFlags {
  InputFlags input;
  bool json = false;
  std::string html;
};

std::string Describe(const Request& request, const Miss& miss, uint64_t block_tokens) {
  std::string text = fmt::format("Line {}: {} of {} prompt tokens hit; ", request.line,
                                 WithCommas(static_cast<double>(miss.hit_tokens), 0),
                                 WithCommas(static_cast<double>(request.input_tokens), 0));
  if (miss.reason == MissReason::kNone) return text + "nothing was missed\n";
  text += fmt::format("first miss at block {} (token {}): {}", miss.first_block,
                      miss.first_block * block_tokens, MissReasonName(miss.reason));
  if (miss.reason == MissReason::kExpired) {
    text += fmt::format(", unused for {}",
                        FormatQuantity(static_cast<double>(miss.age_ms) / 1e3, Unit::kSeconds));
  }
  if (miss.reason == MissReason::kEvicted) {
    text += fmt::format(", {} distinct blocks were used since", miss.distance);
  }
  if (request.session == 0 && miss.last_line > 0) {
    text += fmt::format(", its beginning last seen on line {} {} before", miss.last_line,
                        FormatQuantity(static_cast<double>(miss.age_ms) / 1e3, Unit::kSeconds));
  }
  const std::string_view advice = MissAdvice(miss.reason);
  return text + (advice.empty() ? "" : fmt::format(" ({})", advice)) + "\n";
}

// What stood there in the session's request before, and what does now.
struct TextStory {
  TextChange change;
  uint64_t earlier_line = 0;
};

std::string Describe(const TextStory& story) {
  const TextChange& change = story.change;
  if (!change.differs) return "The session's last prompt is a prefix of this one\n";
  return fmt::format("{}: {} differs at byte {}: '{}' was '{}' on line {}\n", change.reason,
                     change.part, change.byte, change.later, change.earlier, story.earlier_line);
}

// Where the log holds the text, and the session has an earlier request.
kv::Result<std::optional<TextStory>> TellText(const std::string& path, uint64_t line) {
  KV_ASSIGN_OR_RETURN(TextLog log, TextLog::Open(path, BrokenLines::kSkip, WrongTimes::kLeave, 4));
  std::unordered_map<uint64_t, TextRequest> last;
  TextRequest request;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, log.Next(request));
    if (!more || request.base.line > line) return std::optional<TextStory>();
    const auto earlier = last.find(TurnKey(request.base));
    if (request.base.line == line && earlier != last.end()) {
      return std::optional<TextStory>(
          {CompareTexts(earlier->second, request), earlier->second.base.line});
    }
    last[TurnKey(request.base)] = request;
  }
}

std::string ExplanationJson(const Request& request, const Miss& miss, uint64_t block_tokens,
                            const std::optional<TextStory>& story) {
  nlohmann::ordered_json json = {{"line", request.line},
                                 {"input_tokens", request.input_tokens},
                                 {"hit_tokens", miss.hit_tokens},
                                 {"reason", MissReasonName(miss.reason)},
                                 {"advice", MissAdvice(miss.reason)}};
  if (miss.reason != MissReason::kNone) {
    json["first_block"] = miss.first_block;
    json["first_token"] = miss.first_block * block_tokens;
  }
  if (request.session == 0 && miss.last_line > 0) {
    json["last_seen_line"] = miss.last_line;
    json["last_seen_ms_before"] = miss.age_ms;
  }
  if (miss.reason == MissReason::kExpired) json["unused_ms"] = miss.age_ms;
  if (miss.reason == MissReason::kEvicted) json["blocks_used_since"] = miss.distance;
  if (story && story->change.differs) {
    const TextChange& change = story->change;
    json["text"] = {{"reason", change.reason},     {"part", change.part},
                    {"byte", change.byte},         {"later", change.later},
                    {"earlier", change.earlier},   {"earlier_line", story->earlier_line},
                    {"lost_bytes", change.lost_bytes}};
  }
  // What differs is cut out of prompts, perhaps within a character.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

kv::Status RunExplain(const ExplainFlags& flags, CommandResult& result) {
  KV_ASSIGN_OR_RETURN(const TraceOptions options, flags.input.Options());
  KV_ASSIGN_OR_RETURN(std::unique_ptr<TraceSource> source, OpenTrace(flags.input.path, options));
  KV_ASSIGN_OR_RETURN(const int64_t ttl_ms, Milliseconds(flags.ttl));
  KV_ASSIGN_OR_RETURN(const uint64_t capacity, TokenCount(flags.capacity));
  const uint64_t block_tokens = source->block_tokens();
  if (capacity > 0 && capacity < block_tokens) {
    return {kv::Code::kInvalid,
            fmt::format("a capacity of {} tokens holds no block of {}; 0: no limit", capacity,
                        block_tokens)};
  }
  MissExplainer explainer(
      {.block_tokens = block_tokens, .ttl_ms = ttl_ms, .capacity_blocks = capacity / block_tokens});
  MissSummary summary;
  Request request;
  std::optional<std::pair<Request, Miss>> wanted;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, source->Next(request));
    if (!more) break;
    const Miss miss = explainer.Add(request);
    summary.Add(miss);
    if (request.line == flags.line) wanted.emplace(request, miss);
  }
  result.errors += IssuesText(source->issues());
  if (flags.line == 0) {
    result.output = flags.json ? summary.ToJson() : summary.ToText();
    if (flags.html.empty()) return kv::Status();
    return WriteTextFile(flags.html, summary.ToHtml("Why requests missed: " + flags.input.path));
  }
  if (!wanted) {
    return {kv::Code::kNotFound, fmt::format("no request stands on line {}", flags.line)};
  }
  std::optional<TextStory> story;
  if (flags.input.path != "-") {
    KV_ASSIGN_OR_RETURN(story, TellText(flags.input.path, flags.line));
  }
  const auto& [at_line, miss] = *wanted;
  const std::string text =
      Describe(at_line, miss, block_tokens) + (story ? Describe(*story) : "");
  result.output = flags.json ? ExplanationJson(at_line, miss, block_tokens, story) : text;
  if (flags.html.empty()) return kv::Status();
  return WriteTextFile(flags.html, HtmlPage("Why a request missed: " + flags.input.path,
                                            "<pre>" + EscapeHtml(text) + "</pre>\n"));
}

kv::Status RunLint(const LintFlags& flags, CommandResult& result) {
  const std::string& path = flags.input.path;
  const BrokenLines broken = flags.input.strict ? BrokenLines::kRefuse : BrokenLines::kSkip;
  KV_ASSIGN_OR_RETURN(TextLog log, TextLog::Open(path, broken, WrongTimes::kLeave, 4));
  RequestLinter linter;
  TextRequest request;
  while (true) {
    KV_ASSIGN_OR_RETURN(const bool more, log.Next(request));
    if (!more) break;
    linter.Add(request);
  }
  result.errors += IssuesText(log.issues());
  if (linter.requests() == 0) {
    return {kv::Code::kInvalid, path + " holds no request with its text: lint needs messages, "
                                    "input or prompt, not block ids"};
  }
  result.output = flags.json ? LintJson(linter) : LintText(linter);
  if (!flags.html.empty()) {
    KV_RETURN_IF_ERROR(
        WriteTextFile(flags.html, LintHtml(linter, "What kills prefix caching: " + path)));
  }
  result.exit_code = linter.Findings().empty() ? 0 : 1;
  return kv::Status();
}

void AddHits(CLI::App& command, HitFlags& flags) {
  flags.input.AddTo(command);
  command.add_option("--ttl", flags.ttls, "Times to live, such as '5 min'")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--capacity", flags.capacities, "Capacities in tokens, such as '4 M'")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--model", flags.model, "For bytes: a known model");
  command.add_flag("--policies", flags.policies, "Also S3-FIFO and the store's own policy");
  command.add_flag("--json", flags.json, "Print all figures as JSON");
  command.add_flag("--rate", flags.rate, "Say how fast it went");
  command.add_option("--html", flags.html, "Also write a page with charts");
}

void AddConvert(CLI::App& command, ConvertFlags& flags) {
  flags.input.AddTo(command);
  command.add_option("-o,--output", flags.output, "The file to write")->required();
  command.add_option("--to", flags.to, "mooncake or bailian");
  command.add_option("--sample", flags.sample.share, "Keep this share of the sessions");
  command.add_option("--copies", flags.scale.copies,
                     "Multiply the sessions, each with its own blocks");
  command.add_option("--shared-blocks", flags.scale.shared_blocks,
                     "Leading blocks common to all copies");
  command.add_option("--time-scale", flags.scale.time_scale, "0.5 = twice as fast");
  command.add_option("--anonymise", flags.key_file,
                     "Rename blocks and sessions under this file's key");
}

}  // namespace

CommandResult TraceCommand(const std::vector<std::string>& arguments, const AppVisitor& visit) {
  CLI::App app("What request traces say about caching, and changes to them.", "cairn trace");
  app.require_subcommand(1);
  HitFlags hits;
  ConvertFlags convert;
  ExplainFlags explain;
  LintFlags lint;
  CLI::App* hits_app =
      app.add_subcommand("hits", "Hit rates by TTL, capacity, block size and policy");
  AddHits(*hits_app, hits);
  CLI::App* convert_app = app.add_subcommand("convert", "Convert, sample, scale and anonymise");
  AddConvert(*convert_app, convert);
  CLI::App* explain_app = app.add_subcommand("explain", "Why requests missed");
  explain.input.AddTo(*explain_app);
  explain_app->add_option("--ttl", explain.ttl, "Judge under this TTL");
  explain_app->add_option("--capacity", explain.capacity,
                          "Judge under this LRU capacity, in tokens");
  explain_app->add_option("--line", explain.line, "Explain the request on this line");
  explain_app->add_flag("--json", explain.json, "Print all figures as JSON");
  explain_app->add_option("--html", explain.html, "Also write a page with a chart");
  CLI::App* lint_app = app.add_subcommand("lint", "Find what kills prefix caching in request logs");
  lint.input.AddTo(*lint_app);
  lint_app->add_flag("--json", lint.json, "Print the findings as JSON");
  lint_app->add_option("--html", lint.html, "Also write a page with a chart");
  return RunParsed(app, arguments, visit, [&](CommandResult& result) {
    if (*hits_app) return RunHits(hits, result);
    if (*convert_app) return RunConvert(convert, result);
    if (*explain_app) return RunExplain(explain, result);
    return RunLint(lint, result);
  });
}

}  // namespace cairn::tools
