// Turns a logged body into named pieces of text, tools first, as chat templates put them.
#include "tools/trace/text_log.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kvstore/base/date_time.h"
#include "kvstore/base/digest.h"
#include "tools/trace/sources.h"

namespace cairn::tools {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr uint64_t kTextBlockTokens = 64;

kv::Status Broken(std::string message) { return {kv::Code::kCorrupt, std::move(message)}; }

std::string_view StringAt(const object& record, const char* key) {
  std::string_view text;
  if (record.at_key(key).get_string().get(text)) return {};
  return text;
}

// The value in its written order of keys, without "cache_control", which servers must ignore.
void AppendWithoutHints(const element& value, std::string& out) {
  object fields;
  array items;
  if (!value.get_object().get(fields)) {
    out += '{';
    bool first = true;
    for (const auto field : fields) {
      if (field.key == "cache_control") continue;
      out += first ? "\"" : ",\"";
      out.append(field.key).append("\":");
      AppendWithoutHints(field.value, out);
      first = false;
    }
    out += '}';
  } else if (!value.get_array().get(items)) {
    out += '[';
    bool first = true;
    for (const element item : items) {
      if (!first) out += ',';
      AppendWithoutHints(item, out);
      first = false;
    }
    out += ']';
  } else {
    out += simdjson::minify(value);
  }
}

std::string TextOf(const element& value) {
  std::string_view text;
  if (!value.get_string().get(text)) return std::string(text);
  std::string out;
  AppendWithoutHints(value, out);
  return out;
}

void AddMessages(const element& messages, const char* list, std::vector<Piece>& pieces) {
  array items;
  if (messages.get_array().get(items)) {
    pieces.push_back({"prompt", TextOf(messages)});
    return;
  }
  size_t index = 0;
  for (const element item : items) {
    object message;
    std::string_view role = "item";
    if (!item.get_object().get(message) && !StringAt(message, "role").empty()) {
      role = StringAt(message, "role");
    }
    pieces.push_back({std::string(list) + "[" + std::to_string(index++) + "]." + std::string(role),
                      TextOf(item)});
  }
}

void AddPieces(const object& body, std::vector<Piece>& pieces) {
  element value;
  array tools;
  if (!body.at_key("tools").get_array().get(tools)) {
    size_t index = 0;
    for (const element tool : tools) {
      pieces.push_back({"tools[" + std::to_string(index++) + "]", TextOf(tool)});
    }
  }
  for (const char* key : {"system", "instructions"}) {
    if (!body.at_key(key).get(value) && !value.is_null()) pieces.push_back({key, TextOf(value)});
  }
  for (const char* key : {"messages", "input", "prompt"}) {
    if (!body.at_key(key).get(value)) return AddMessages(value, key, pieces);
  }
}

// Logs disagree about units: what is this large can only be that fine.
int64_t ToMilliseconds(double time) {
  if (time > 1e17) return static_cast<int64_t>(time / 1e6);  // Nanoseconds.
  if (time > 1e14) return static_cast<int64_t>(time / 1e3);
  if (time > 1e11) return static_cast<int64_t>(time);
  return static_cast<int64_t>(std::llround(time * 1e3));
}

// "output" as text, or the usage that the server counted.
void ReadResponse(const object& record, uint32_t bytes_per_token, TextRequest& request) {
  const std::string_view output = StringAt(record, "output");
  request.base.output_tokens = output.size() / bytes_per_token;
  request.cached_tokens.reset();
  object usage;
  if (record.at_key("usage").get_object().get(usage) &&
      record.at_pointer("/response/usage").get_object().get(usage)) {
    return;
  }
  uint64_t tokens = 0;
  for (const char* key : {"completion_tokens", "output_tokens"}) {
    if (!usage.at_key(key).get_uint64().get(tokens)) request.base.output_tokens = tokens;
  }
  for (const char* path :
       {"/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens",
        "/cache_read_input_tokens", "/prompt_cache_hit_tokens"}) {
    if (!usage.at_pointer(path).get_uint64().get(tokens)) request.cached_tokens = tokens;
  }
}

// A session may have several agents at work, each with prompts of its own.
uint64_t ReadAgent(const object& record, const object& body) {
  for (const object& place : {record, body}) {
    std::string_view name;
    if (!place.at_pointer("/headers/x-claude-code-agent-id").get_string().get(name)) {
      return SessionNumber(name);
    }
  }
  return 0;
}

uint64_t ReadSession(const object& record, const object& body) {
  for (const object& place : {record, body}) {
    for (const char* path : {"/session_id", "/session", "/headers/x-claude-code-session-id",
                             "/metadata/user_id", "/prompt_cache_key", "/user"}) {
      std::string_view name;
      if (!place.at_pointer(path).get_string().get(name)) return SessionNumber(name);
      int64_t number = 0;
      if (!place.at_pointer(path).get_int64().get(number)) {
        return SessionNumber(std::to_string(number));
      }
    }
  }
  return 0;
}

}  // namespace

struct TextLog::State {
  State(LineReader lines_in, BrokenLines broken_lines_in, WrongTimes wrong_times_in,
        uint32_t bytes_per_token_in)
      : lines(std::move(lines_in)),
        broken_lines(broken_lines_in),
        wrong_times(wrong_times_in),
        bytes_per_token(bytes_per_token_in) {}

  LineReader lines;
  BrokenLines broken_lines;
  WrongTimes wrong_times;
  uint32_t bytes_per_token;
  simdjson::dom::parser parser;
  TraceIssues issues;
  TraceClock clock;
  std::string wrong_time;  // Of the line parsed last.

  kv::Status ReadTime(const object& record) {
    std::optional<int64_t> told_ms;
    for (const char* key : {"timestamp", "created", "time"}) {
      double time = 0;
      std::string_view date;
      if (!record.at_key(key).get_string().get(date)) {
        auto at = kv::ParseDateTime(std::string(date));
        if (!at) at = kv::ParseDateTime(std::string(date) + "Z");  // Logs often leave it out.
        if (!at) {
          return Broken("has a time that is neither a number nor like 2026-11-29T10:11:01Z");
        }
        told_ms = at->value;
        break;
      }
      if (!record.at_key(key).get_double().get(time) && std::isfinite(time) &&
          time > -1e15 && time < 1e19) {
        told_ms = ToMilliseconds(time);
        break;
      }
    }
    wrong_time = clock.Advance(told_ms);
    return kv::Status();
  }

  kv::Status Parse(std::string_view line, TextRequest& request) {
    object record;
    if (parser.parse(line.data(), line.size()).get_object().get(record)) {
      return Broken("is not a JSON object");
    }
    object body = record;
    for (const char* key : {"request", "body"}) {
      object inner;
      if (!record.at_key(key).get_object().get(inner)) body = inner;
    }
    request.pieces.clear();
    AddPieces(body, request.pieces);
    if (request.pieces.empty()) return Broken("has no messages, input or prompt");
    request.model = std::string(StringAt(body, "model"));
    KV_RETURN_IF_ERROR(ReadTime(record));
    request.base.time_ms = clock.now_ms();
    request.base.line = lines.line_number();
    request.base.session = ReadSession(record, body);
    request.base.agent = ReadAgent(record, body);
    request.base.input_tokens = request.bytes() / bytes_per_token;
    ReadResponse(record, bytes_per_token, request);
    return kv::Status();
  }
};

uint64_t TextRequest::bytes() const {
  uint64_t total = 0;
  for (const Piece& piece : pieces) total += piece.text.size();
  return total;
}

TextLog::TextLog(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextLog::TextLog(TextLog&&) noexcept = default;
TextLog::~TextLog() = default;

kv::Result<TextLog> TextLog::Open(const std::string& path, BrokenLines broken_lines,
                                  WrongTimes wrong_times, uint32_t bytes_per_token) {
  if (bytes_per_token == 0) {
    return kv::Status(kv::Code::kInvalid, "a token stands for at least 1 byte");
  }
  KV_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  return TextLog(std::unique_ptr<State>(
      new State(std::move(lines), broken_lines, wrong_times, bytes_per_token)));
}

kv::Result<bool> TextLog::Next(TextRequest& request) {
  while (true) {
    std::string_view line;
    KV_ASSIGN_OR_RETURN(const LineReader::Outcome outcome, state_->lines.Next(line));
    if (outcome == LineReader::Outcome::kEnd) return false;
    if (outcome == LineReader::Outcome::kLine && line.find_first_not_of(" \t") == line.npos)
      continue;
    const kv::Status parsed = outcome == LineReader::Outcome::kTooLong
                                  ? Broken("is longer than a line may be")
                                  : state_->Parse(line, request);
    const bool told = state_->wrong_times == WrongTimes::kTell && !state_->wrong_time.empty();
    if (parsed.ok() && !told) return true;
    std::string issue = "line " + std::to_string(state_->lines.line_number()) + ": " +
                        (parsed.ok() ? state_->wrong_time : parsed.message());
    if (state_->broken_lines == BrokenLines::kRefuse) return Broken(std::move(issue));
    if (!parsed.ok()) {
      state_->issues.AddSkipped(std::move(issue));
      continue;
    }
    state_->issues.AddRetimed(std::move(issue));
    return true;
  }
}

const TraceIssues& TextLog::issues() const { return state_->issues; }

std::vector<uint64_t> ChainOf(const TextRequest& request, uint64_t block_bytes) {
  std::string text;
  text.reserve(request.bytes());
  for (const Piece& piece : request.pieces) text += piece.text;
  std::vector<uint64_t> blocks;
  kv::Sha256Digest parent = {};
  for (size_t end = block_bytes; end <= text.size(); end += block_bytes) {
    kv::Sha256Stream stream;
    stream.Add(parent);
    stream.Add(kv::AsBytes(std::string_view(text).substr(end - block_bytes, block_bytes)));
    parent = stream.Finish();
    uint64_t id = 0;
    std::memcpy(&id, parent.data(), sizeof id);
    blocks.push_back(id);
  }
  return blocks;
}

namespace {

class TextSource : public TraceSource {
 public:
  TextSource(TextLog log, const TraceOptions& options) : log_(std::move(log)), options_(options) {}

  kv::Result<bool> Next(Request& request) override {
    KV_ASSIGN_OR_RETURN(const bool more, log_.Next(text_));
    if (!more) return false;
    request = std::move(text_.base);
    request.blocks = ChainOf(text_, block_tokens() * options_.bytes_per_token);
    return true;
  }
  uint64_t block_tokens() const override { return kTextBlockTokens; }
  bool has_partial_blocks() const override { return false; }
  const TraceIssues& issues() const override { return log_.issues(); }

 private:
  TextLog log_;
  const TraceOptions options_;
  TextRequest text_;
};

}  // namespace

SourceResult OpenTextSource(const std::string& path, const TraceOptions& options) {
  KV_ASSIGN_OR_RETURN(TextLog log,
                      TextLog::Open(path, options.broken_lines, WrongTimes::kTell,
                                    options.bytes_per_token));
  return std::unique_ptr<TraceSource>(std::make_unique<TextSource>(std::move(log), options));
}

}  // namespace cairn::tools
