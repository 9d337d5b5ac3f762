// One line of JSON for each event.
#include "tests/sim/history_log.h"

#include <algorithm>
#include <cinttypes>

#include "kvstore/base/checksum.h"

namespace cairn::sim {
namespace {

double Seconds(int64_t nanos) { return static_cast<double>(nanos) * 1e-9; }

}  // namespace

std::unique_ptr<HistoryLog> HistoryLog::Create(const std::string& path, const SimClock& clock) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return nullptr;
  return std::unique_ptr<HistoryLog>(new HistoryLog(file, clock));
}

uint64_t HistoryLog::Begin(const Call& call, BlockKey key, const std::optional<PutTerms>& terms) {
  const uint64_t operation = ++operations_;
  const double began = Now();
  const double deadline = Seconds((clock_.Now() + call.patience).nanos) - began;
  std::fprintf(file_,
               "{\"id\": \"%" PRIu64
               "\", \"op\": \"%s\", \"space\": \"%u\", \"key\": \"%s\", \"begin\": %.9f, "
               "\"deadline\": %.9f",
               operation, std::string(call.op).c_str(), key.space, key.id.ToHex().c_str(), began,
               deadline);
  if (!call.node.empty()) {
    std::fprintf(file_, ", \"node\": \"%s\"", std::string(call.node).c_str());
  }
  if (terms) {
    std::fprintf(file_,
                 ", \"digest\": \"%016" PRIx64
                 "\", \"ttl\": %.3f, \"refreshed\": %s, \"durable\": %s",
                 kv::Checksum(terms->bytes), static_cast<double>(terms->ttl_millis) / 1'000,
                 terms->refreshed ? "true" : "false", terms->durable ? "true" : "false");
  }
  std::fputs("}\n", file_);
  return operation;
}

void HistoryLog::End(uint64_t operation, std::string_view result, kv::ByteSpan bytes) {
  std::fprintf(file_, "{\"id\": \"%" PRIu64 "\", \"end\": %.9f, \"result\": \"%s\"", operation,
               Now(), std::string(result).c_str());
  if (!bytes.empty()) std::fprintf(file_, ", \"digest\": \"%016" PRIx64 "\"", kv::Checksum(bytes));
  std::fputs("}\n", file_);
}

void HistoryLog::Fault(std::string_view node, kv::Instant begin, kv::Instant end) {
  std::fprintf(file_, R"({"event": "fault", "node": "%s", "begin": %.9f, "end": %.9f})",
               std::string(node).c_str(), Seconds(begin.nanos), Seconds(end.nanos));
  std::fputs("\n", file_);
}

void HistoryLog::Lost(std::string_view node) {
  std::fprintf(file_, "{\"event\": \"lost\", \"node\": \"%s\", \"at\": %.9f}\n",
               std::string(node).c_str(), Now());
}

void HistoryLog::Repaired() {
  std::fprintf(file_, "{\"event\": \"repaired\", \"at\": %.9f}\n", Now());
}

void HistoryLog::Crash(CrashMode mode) {
  const double now = Now();
  std::fprintf(file_, R"({"event": "fault", "node": "", "begin": %.9f, "end": %.9f})", now, now);
  std::fputs("\n", file_);
  if (mode == CrashMode::kPowerCut) {
    std::fprintf(file_, "{\"event\": \"power_cut\", \"at\": %.9f}\n", now);
  }
}

double HistoryLog::Now() {
  told_ = std::max(told_ + 1, clock_.Now().nanos);
  return Seconds(told_);
}

}  // namespace cairn::sim
