// Tells formats apart by the keys of the first line, and joins blocks where larger ones are asked
// for.
#include <simdjson.h>

#include "tools/trace/line_reader.h"
#include "tools/trace/sources.h"

namespace cairn::tools {
namespace {

class JoinedSource : public TraceSource {
 public:
  JoinedSource(std::unique_ptr<TraceSource> source, uint64_t factor)
      : source_(std::move(source)), factor_(factor) {}

  kv::Result<bool> Next(Request& request) override {
    KV_ASSIGN_OR_RETURN(const bool more, source_->Next(request));
    if (!more) return false;
    std::vector<uint64_t>& blocks = request.blocks;
    size_t joined = 0;
    for (size_t end = factor_; end <= blocks.size(); end += factor_)
      blocks[joined++] = blocks[end - 1];
    // Ids up to the very end of the prompt: the partial block at the tail has one too.
    const bool whole =
        has_partial_blocks() && blocks.size() * source_->block_tokens() >= request.input_tokens;
    if (whole && blocks.size() % factor_ != 0) blocks[joined++] = blocks.back();
    blocks.resize(joined);
    return true;
  }
  uint64_t block_tokens() const override { return source_->block_tokens() * factor_; }
  bool has_partial_blocks() const override { return source_->has_partial_blocks(); }
  const TraceIssues& issues() const override { return source_->issues(); }

 private:
  std::unique_ptr<TraceSource> source_;
  const uint64_t factor_;
};

kv::Result<TraceFormat> DetectFormat(const std::string& path) {
  KV_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  simdjson::dom::parser parser;
  for (int tries = 0; tries < 100; ++tries) {
    std::string_view line;
    KV_ASSIGN_OR_RETURN(const LineReader::Outcome outcome, lines.Next(line));
    if (outcome == LineReader::Outcome::kEnd) break;
    simdjson::dom::object record;
    if (outcome != LineReader::Outcome::kLine) continue;
    if (parser.parse(line.data(), line.size()).get_object().get(record)) continue;
    const auto has = [&](const char* key) { return !record.at_key(key).error(); };
    if (has("req") && has("block_size")) return TraceFormat::kSessions;
    if (has("hash_ids")) return has("chat_id") ? TraceFormat::kBailian : TraceFormat::kMooncake;
    for (const char* key : {"messages", "request", "body", "input", "prompt"}) {
      if (has(key)) return TraceFormat::kText;
    }
  }
  return kv::Status(kv::Code::kInvalid,
                    path +
                        ": no known trace format in its first lines; say which with --format "
                        "(mooncake, bailian, sessions or text), one JSON object per line");
}

SourceResult OpenAs(TraceFormat format, const std::string& path, TraceOptions options) {
  options.format = format;
  if (format == TraceFormat::kSessions) return OpenSessionSource(path, options);
  if (format == TraceFormat::kText) return OpenTextSource(path, options);
  return OpenBlockSource(path, options);
}

}  // namespace

kv::Result<TraceFormat> ParseTraceFormat(std::string_view name) {
  if (name == "auto") return TraceFormat::kAuto;
  if (name == "mooncake") return TraceFormat::kMooncake;
  if (name == "bailian") return TraceFormat::kBailian;
  if (name == "sessions") return TraceFormat::kSessions;
  if (name == "text" || name == "openai") return TraceFormat::kText;
  return kv::Status(kv::Code::kInvalid, "unknown trace format '" + std::string(name) +
                                            "': use auto, mooncake, bailian, sessions or text");
}

std::unique_ptr<TraceSource> JoinBlocks(std::unique_ptr<TraceSource> source, uint64_t factor) {
  return std::make_unique<JoinedSource>(std::move(source), factor);
}

SourceResult OpenTrace(const std::string& path, const TraceOptions& options) {
  TraceFormat format = options.format;
  if (format == TraceFormat::kAuto) {
    if (path == "-") {
      return kv::Status(kv::Code::kInvalid,
                        "standard input needs --format: it cannot be read twice");
    }
    KV_ASSIGN_OR_RETURN(format, DetectFormat(path));
  }
  KV_ASSIGN_OR_RETURN(std::unique_ptr<TraceSource> source, OpenAs(format, path, options));
  if (options.block_tokens == 0 || options.block_tokens == source->block_tokens()) return source;
  if (options.block_tokens % source->block_tokens() != 0) {
    return kv::Status(kv::Code::kInvalid, "blocks of " + std::to_string(options.block_tokens) +
                                              " tokens cannot be made of the trace's " +
                                              std::to_string(source->block_tokens()) +
                                              ": use a multiple of it");
  }
  const uint64_t factor = options.block_tokens / source->block_tokens();
  return JoinBlocks(std::move(source), factor);
}

}  // namespace cairn::tools
