// Times, shares and counters as text for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kvstore/client/store_admin.h"
#include "kvstore/client/store_stats.h"

namespace cairn::tools {

using Json = nlohmann::ordered_json;

// With a final newline; bytes that are not UTF-8 (names may hold any) are replaced.
std::string ToText(const Json& json);

// "2026-11-29T20:15:03Z"; "-" for 0.
std::string FormatTime(kv::UnixMillis at);
// A span from now ("3 d"), or a time as FormatTime writes it.
kv::Result<kv::UnixMillis> ParseTime(const std::string& text, kv::UnixMillis now);
kv::UnixMillis UnixNow();
// "in 2.95 d", "12.0 s ago", "-" for 0.
std::string FromNow(kv::UnixMillis at, kv::UnixMillis now);

// "93.1 %"; "-" when there is nothing to divide by.
std::string Percent(uint64_t part, uint64_t whole);

std::string_view StateName(kv::TargetInfo::State state);
std::string ShapeName(const kv::NamespaceOptions& options);  // "10+2"
// "10+2" into the two counts. kInvalid says how it is written.
kv::Status ParseShape(const std::string& text, kv::NamespaceOptions& options);

Json ToJson(const kv::StoreStats& stats);
Json ToJson(const kv::TargetInfo& target);
Json ToJson(const kv::SpaceInfo& space);
Json ToJson(const kv::BlockInfo& block);
Json ToJson(const kv::MaintenanceStatus& status);

}  // namespace cairn::tools
