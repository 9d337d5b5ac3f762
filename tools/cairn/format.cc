// Names of JSON fields are those of the structs; sizes are bytes, times are Unix milliseconds.
#include "tools/cairn/format.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>

#include "kvstore/base/date_time.h"
#include "kvstore/config/quantity.h"
#include "tools/cairn/keys.h"

namespace cairn::tools {

using kv::Code;
using kv::Status;

std::string ToText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

kv::UnixMillis UnixNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
}

std::string FormatTime(kv::UnixMillis at) {
  if (at.value == 0) return "-";
  const std::time_t seconds = at.value / 1000;
  std::tm calendar{};
  ::gmtime_r(&seconds, &calendar);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &calendar);
  return text.data();
}

kv::Result<kv::UnixMillis> ParseTime(const std::string& text, kv::UnixMillis now) {
  const auto span = kv::ParseDuration(text);
  if (span.ok()) return kv::UnixMillis{now.value + span.value().value / 1'000'000};
  const std::optional<kv::UnixMillis> date = kv::ParseDateTime(text);
  if (date) return *date;
  return Status(Code::kInvalid, "'" + text +
                                    "' is no time: write a span from now, such as '3 d', or "
                                    "2026-12-31T23:59:59Z");
}

std::string FromNow(kv::UnixMillis at, kv::UnixMillis now) {
  if (at.value == 0) return "-";
  const int64_t millis = at.value - now.value;
  if (millis >= 0) return std::string("in ").append(kv::RoughDuration(kv::Millis(millis)));
  return kv::RoughDuration(kv::Millis(-millis)) + " ago";
}

std::string Percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%",
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text.data();
}

std::string_view StateName(kv::TargetInfo::State state) {
  switch (state) {
    case kv::TargetInfo::State::kServing: return "serving";
    case kv::TargetInfo::State::kLost: return "lost";
    case kv::TargetInfo::State::kRepairing: return "repairing";
  }
  return "unknown";
}

std::string ShapeName(const kv::NamespaceOptions& options) {
  return std::to_string(options.data_shards) + "+" + std::to_string(options.parity_shards);
}

Status ParseShape(const std::string& text, kv::NamespaceOptions& options) {
  const size_t plus = text.find('+');
  uint32_t data = 0, parity = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  bool good = plus != std::string::npos;
  if (good) {
    const auto [data_end, data_error] = std::from_chars(begin, begin + plus, data);
    const auto [parity_end, parity_error] = std::from_chars(begin + plus + 1, end, parity);
    good = data_error == std::errc() && data_end == begin + plus &&
           parity_error == std::errc() && parity_end == end;
  }
  if (!good || data < 1 || data > kv::kDataShardsMax || parity > kv::kParityShardsMax) {
    return Status(Code::kInvalid, "'" + text +
                                      "' is no shape: write DATA+PARITY, such as 10+2 (1 to " +
                                      std::to_string(kv::kDataShardsMax) + ", 0 to " +
                                      std::to_string(kv::kParityShardsMax) + ")");
  }
  options.data_shards = static_cast<uint8_t>(data);
  options.parity_shards = static_cast<uint8_t>(parity);
  return Status();
}

Json ToJson(const kv::StoreStats& stats) {
  Json json = Json::object();
  VisitStats(stats, [&](std::string_view name, kv::StatKind, uint64_t value, std::string_view) {
    json[std::string(name)] = value;
  });
  return json;
}

Json ToJson(const kv::TargetInfo& target) {
  return {{"place", target.place},
          {"id", target.id.value},
          {"label", target.label},
          {"state", StateName(target.state)},
          {"reason", target.reason},
          {"capacity_bytes", target.capacity_bytes},
          {"free_bytes", target.free_bytes},
          {"live_bytes", target.live_bytes},
          {"shards", target.shards},
          {"reads", target.reads},
          {"bytes_read", target.bytes_read},
          {"bytes_appended", target.bytes_appended},
          {"bytes_moved", target.bytes_moved},
          {"corrupt_reads", target.corrupt_reads}};
}

Json ToJson(const kv::SpaceInfo& space) {
  const kv::NamespaceOptions& options = space.options;
  return {{"name", options.name},
          {"id", space.id.ToHex()},
          {"fingerprint", options.fingerprint},
          {"data_shards", options.data_shards},
          {"parity_shards", options.parity_shards},
          {"run_blocks", options.run_blocks},
          {"retention", options.retention == kv::RetentionKind::kFixed ? "fixed" : "refreshed"},
          {"ttl_seconds", options.ttl_seconds},
          {"medium", options.medium == kv::Medium::kMemory ? "memory" : "ssd"},
          {"quota_bytes", options.quota_bytes},
          {"has_token", space.has_token},
          {"stored_bytes", space.stored_bytes},
          {"kept_bytes", space.kept_bytes},
          {"stripes", space.stripes}};
}

Json ToJson(const kv::BlockInfo& block) {
  return {{"id", block.id.ToHex()},
          {"run", block.run.ToHex()},
          {"name", BlockName(block.id, block.run)},
          {"size", block.size},
          {"stripe", block.stripe.ToHex()},
          {"expires_at_ms", block.expires_at.value},
          {"last_access_ms", block.last_access.value},
          {"keep_until_ms", block.keep_until.value}};
}

Json ToJson(const kv::MaintenanceStatus& status) {
  return {{"running", status.running},
          {"bytes_per_second", status.bytes_per_second},
          {"bytes_done", status.bytes_done},
          {"bytes_left", status.bytes_left},
          {"shards_checked", status.shards_checked},
          {"shards_damaged", status.shards_damaged},
          {"shards_repaired", status.shards_repaired},
          {"shards_failed", status.shards_failed},
          {"passes", status.passes},
          {"seconds_left", status.seconds_left}};
}

}  // namespace cairn::tools
