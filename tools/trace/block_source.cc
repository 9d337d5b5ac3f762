// Reads records that carry block ids already: Mooncake JSONL with its aliases, and Bailian.
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "kvstore/base/checksum.h"
#include "kvstore/base/digest.h"
#include "kvstore/base/units.h"
#include "tools/trace/line_reader.h"
#include "tools/trace/sources.h"

namespace cairn::tools {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

constexpr uint64_t kMooncakeBlockTokens = 512;
constexpr uint64_t kBailianBlockTokens = 16;
constexpr uint64_t kTokensMax = UINT64_C(1) << 40;
constexpr int64_t kLatestMs = INT64_C(1) << 58;  // Sums of delays stop here.

kv::Status Broken(std::string message) { return {kv::Code::kCorrupt, std::move(message)}; }

// The value under the first of the names that the record has.
bool Find(const object& record, std::initializer_list<const char*> names, element& value) {
  for (const char* name : names) {
    if (!record.at_key(name).get(value)) return true;
  }
  return false;
}

kv::Result<uint64_t> Tokens(const object& record, std::initializer_list<const char*> names) {
  element value;
  const std::string name = *names.begin();
  if (!Find(record, names, value)) return Broken("has no " + name);
  uint64_t tokens = 0;
  if (value.get_uint64().get(tokens)) return Broken(name + " is not a whole number of tokens");
  if (tokens > kTokensMax) return Broken(name + " is impossibly large");
  return tokens;
}

kv::Status ReadBlocks(const object& record, std::vector<uint64_t>& blocks) {
  element value;
  simdjson::dom::array ids;
  if (!Find(record, {"hash_ids", "prefix_block_hashes"}, value)) return Broken("has no hash_ids");
  if (value.get_array().get(ids)) return Broken("hash_ids is not a list");
  blocks.clear();
  for (const element id : ids) {
    uint64_t number = 0;
    int64_t signed_number = 0;
    std::string_view text;
    if (!id.get_uint64().get(number)) {
      blocks.push_back(number);
    } else if (!id.get_int64().get(signed_number)) {
      blocks.push_back(static_cast<uint64_t>(signed_number));
    } else if (!id.get_string().get(text)) {
      blocks.push_back(SessionNumber(text));
    } else {
      return Broken("a hash id is neither a number nor a string");
    }
  }
  return kv::Status();
}

class BlockSource : public TraceSource {
 public:
  BlockSource(LineReader lines, const TraceOptions& options)
      : lines_(std::move(lines)),
        options_(options),
        block_tokens_(options.format == TraceFormat::kBailian ? kBailianBlockTokens
                                                              : kMooncakeBlockTokens) {}

  // Looks at the first sound record for its block size, which holds for all.
  kv::Status Begin() {
    KV_ASSIGN_OR_RETURN(has_first_, Next(first_));
    return kv::Status();
  }

  kv::Result<bool> Next(Request& request) override {
    if (has_first_) {
      has_first_ = false;
      request = std::move(first_);
      return true;
    }
    while (true) {
      std::string_view line;
      KV_ASSIGN_OR_RETURN(const LineReader::Outcome outcome, lines_.Next(line));
      if (outcome == LineReader::Outcome::kEnd) return false;
      if (outcome == LineReader::Outcome::kLine && line.find_first_not_of(" \t") == line.npos)
        continue;
      const kv::Status parsed = outcome == LineReader::Outcome::kTooLong
                                    ? Broken("is longer than a line may be")
                                    : Parse(line, request);
      if (parsed.ok() && wrong_time_.empty()) return true;
      std::string issue = "line " + std::to_string(lines_.line_number()) + ": " +
                          (parsed.ok() ? wrong_time_ : parsed.message());
      if (options_.broken_lines == BrokenLines::kRefuse) return Broken(std::move(issue));
      if (!parsed.ok()) {
        issues_.AddSkipped(std::move(issue));
        continue;
      }
      issues_.AddRetimed(std::move(issue));
      return true;
    }
  }
  uint64_t block_tokens() const override { return block_tokens_; }
  bool has_partial_blocks() const override { return true; }
  const TraceIssues& issues() const override { return issues_; }

 private:
  kv::Status Parse(std::string_view line, Request& request) {
    object record;
    if (parser_.parse(line.data(), line.size()).get_object().get(record)) {
      return Broken("is not a JSON object");
    }
    KV_ASSIGN_OR_RETURN(request.input_tokens, Tokens(record, {"input_length", "input_tokens"}));
    request.output_tokens = 0;
    element output;
    if (Find(record, {"output_length", "output_tokens"}, output)) {
      KV_ASSIGN_OR_RETURN(request.output_tokens,
                          Tokens(record, {"output_length", "output_tokens"}));
    }
    KV_RETURN_IF_ERROR(ReadBlockSize(record));
    KV_RETURN_IF_ERROR(ReadBlocks(record, request.blocks));
    if (request.blocks.size() > kv::DivCeil(request.input_tokens, block_tokens_)) {
      return Broken("has " + std::to_string(request.blocks.size()) + " blocks of " +
                    std::to_string(block_tokens_) + " tokens for a prompt of " +
                    std::to_string(request.input_tokens));
    }
    KV_RETURN_IF_ERROR(ReadTime(record, request));
    ReadSession(record, request);
    request.line = lines_.line_number();
    return kv::Status();
  }

  kv::Status ReadBlockSize(const object& record) {
    element value;
    if (!Find(record, {"block_size"}, value)) return kv::Status();
    uint64_t tokens = 0;
    if (value.get_uint64().get(tokens) || tokens == 0)
      return Broken("block_size is not above zero");
    if (block_size_known_ && tokens != block_tokens_)
      return Broken("block_size changes in mid-file");
    block_size_known_ = true;
    block_tokens_ = tokens;
    return kv::Status();
  }

  kv::Status ReadTime(const object& record, Request& request) {
    element value;
    double time = 0;
    std::optional<int64_t> told_ms;
    if (Find(record, {"timestamp", "created_time"}, value)) {
      const double unit_ms = options_.format == TraceFormat::kBailian ? 1'000 : 1;
      if (value.get_double().get(time) || !(std::abs(time * unit_ms) <= 1e17)) {
        return Broken("timestamp is not a time");
      }
      told_ms = std::llround(time * unit_ms);
    } else if (Find(record, {"delay_ms", "delay"}, value)) {
      if (value.get_double().get(time) || !std::isfinite(time)) {
        return Broken("delay is not a time");
      }
      const auto delay_ms = static_cast<int64_t>(std::clamp(time, -1e15, 1e15));
      told_ms = std::min(clock_.now_ms() + delay_ms, kLatestMs);
    }
    wrong_time_ = clock_.Advance(told_ms);
    request.time_ms = clock_.now_ms();
    return kv::Status();
  }

  // A Bailian turn belongs to its first ancestor; a session id may be a name or a number.
  void ReadSession(const object& record, Request& request) {
    element value;
    request.session = request.agent = 0;
    if (!Find(record, {"session_id", "chat_id"}, value)) return;
    request.session = SessionNumber(simdjson::minify(value));
    int64_t parent = -1;
    if (options_.format != TraceFormat::kBailian ||
        record.at_key("parent_chat_id").get_int64().get(parent)) {
      return;
    }
    const uint64_t self = request.session;
    const auto known = root_of_chat_.find(SessionNumber(std::to_string(parent)));
    if (parent >= 0 && known != root_of_chat_.end()) request.session = known->second;
    root_of_chat_[self] = request.session;
  }

  LineReader lines_;
  const TraceOptions options_;
  simdjson::dom::parser parser_;
  TraceIssues issues_;
  uint64_t block_tokens_;
  bool block_size_known_ = false;
  TraceClock clock_;
  std::string wrong_time_;  // Of the line parsed last.
  std::unordered_map<uint64_t, uint64_t> root_of_chat_;
  Request first_;
  bool has_first_ = false;
};

}  // namespace

uint64_t SessionNumber(std::string_view name) {
  const kv::Sha256Digest digest = kv::Sha256(kv::AsBytes(name));
  uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof number);
  return number == 0 ? 1 : number;
}

std::string TraceClock::Advance(std::optional<int64_t> told_ms) {
  if (!told_ms) return "has no timestamp: taken as late as the line before";
  const int64_t back_ms = now_ms_ - *told_ms;
  now_ms_ = std::max(now_ms_, *told_ms);
  if (back_ms <= 0) return "";
  return "its time runs back by " + std::to_string(back_ms) +
         " ms: taken as late as the line before";
}

SourceResult OpenBlockSource(const std::string& path, const TraceOptions& options) {
  KV_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  auto source = std::make_unique<BlockSource>(std::move(lines), options);
  KV_RETURN_IF_ERROR(source->Begin());
  return std::unique_ptr<TraceSource>(std::move(source));
}

}  // namespace cairn::tools
