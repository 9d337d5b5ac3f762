// Keys and values are base64; 64-bit numbers are strings, and zero is left out.
#include "kvstore/control/etcd/etcd_codec.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace cairn::kv {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// gRPC's codes, as far as they mean something to a caller.
constexpr int64_t kGrpcInvalid = 3;
constexpr int64_t kGrpcDeadline = 4;
constexpr int64_t kGrpcNotFound = 5;
constexpr int64_t kGrpcExhausted = 8;
constexpr int64_t kGrpcOutOfRange = 11;

// The first key behind all that begin with `prefix`.
std::string EndOf(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<uint8_t>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(end.back() + 1);
  return end;
}

const Json& Member(const Json& object, const char* name) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found != object.end() ? *found : nothing;
}

int64_t Number(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string Text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

Status Malformed() { return Status(Code::kUnavailable, "etcd: an answer that is none"); }

Status ErrorOf(const Json& error) {
  std::string words = "etcd: " + Text(Member(error, "message"));
  if (Member(error, "message").is_null()) words = "etcd: " + Text(Member(error, "error"));
  switch (Number(Member(error, "code"))) {
    case kGrpcInvalid:
    case kGrpcOutOfRange:
      return Status(Code::kInvalid, words);
    case kGrpcDeadline:
      return Status(Code::kDeadline, words);
    case kGrpcNotFound:
      return Status(Code::kNotFound, words);
    case kGrpcExhausted:
      return Status(Code::kNoSpace, words + " (see etcd's quota and its alarms)");
    default:
      return Status(Code::kUnavailable, words);
  }
}

Result<Json> Parse(const HttpReply& answer) {
  Json json = Json::parse(answer.body, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return Status(Code::kUnavailable, "etcd: HTTP status " + std::to_string(answer.status));
  }
  if (answer.status != 200) return ErrorOf(json);
  // Streams wrap errors that come late.
  if (Member(json, "error").is_object()) return ErrorOf(Member(json, "error"));
  return json;
}

std::optional<KeyValue> EntryOf(const Json& json) {
  const auto key = DecodeBase64(Text(Member(json, "key")));
  auto value = DecodeBase64(Text(Member(json, "value")));
  if (!key || !value) return std::nullopt;
  KeyValue entry;
  entry.key = *key;
  entry.value = *std::move(value);
  entry.create_revision = Number(Member(json, "create_revision"));
  entry.mod_revision = Number(Member(json, "mod_revision"));
  entry.lease = {Number(Member(json, "lease"))};
  return entry;
}

int64_t RevisionOf(const Json& json) { return Number(Member(Member(json, "header"), "revision")); }

Json CompareJson(const Compare& compare) {
  const bool create = compare.field == Compare::Field::kCreateRevision;
  return {{"key", EncodeBase64(compare.key)},
          {"target", create ? "CREATE" : "MOD"},
          {"result", "EQUAL"},
          {create ? "create_revision" : "mod_revision", std::to_string(compare.revision)}};
}

Json ChangeJson(const Change& change) {
  const std::string key = EncodeBase64(change.key);
  switch (change.kind) {
    case Change::Kind::kPut:
      return {{"request_put",
               {{"key", key},
                {"value", EncodeBase64(change.value)},
                {"lease", std::to_string(change.lease.value)}}}};
    case Change::Kind::kDelete:
      return {{"request_delete_range", {{"key", key}}}};
    case Change::Kind::kDeletePrefix:
      break;
  }
  return {{"request_delete_range",
           {{"key", key}, {"range_end", EncodeBase64(EndOf(change.key))}}}};
}

// The whole messages of a stream: one a line.
std::vector<Json> Messages(const std::string& body) {
  std::vector<Json> messages;
  size_t begin = 0;
  while (begin < body.size()) {
    size_t end = body.find('\n', begin);
    if (end == std::string::npos) end = body.size();
    Json json = Json::parse(body.begin() + static_cast<int64_t>(begin),
                            body.begin() + static_cast<int64_t>(end), nullptr, false);
    if (!json.is_discarded()) messages.push_back(std::move(json));
    begin = end + 1;
  }
  return messages;
}

bool IsOutcome(const Json& message) {
  const Json& result = Member(message, "result");
  const bool canceled = Member(result, "canceled").is_boolean();
  return Member(message, "error").is_object() || canceled || Member(result, "events").is_array();
}

Status AddEvents(const Json& events, WatchBatch& batch) {
  for (const Json& json : events) {
    auto entry = EntryOf(Member(json, "kv"));
    if (!entry) return Malformed();
    batch.next_revision = std::max(batch.next_revision, entry->mod_revision + 1);
    const bool deleted = Text(Member(json, "type")) == "DELETE";
    batch.events.push_back({.deleted = deleted, .entry = *std::move(entry)});
  }
  return Status();
}

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      word = word << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text.push_back(j <= count ? kDigits[word >> (18 - 6 * j) & 63] : '=');
    }
  }
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char digit : text) {
    const size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(word >> bits));
  }
  return bytes;
}

std::string RangeRequest(std::string_view prefix) {
  const Json json{{"key", EncodeBase64(prefix)}, {"range_end", EncodeBase64(EndOf(prefix))}};
  return json.dump();
}

std::string TransactionRequest(const Transaction& transaction) {
  Json json{{"compare", Json::array()}, {"success", Json::array()}};
  for (const Compare& compare : transaction.compares) {
    json["compare"].push_back(CompareJson(compare));
  }
  for (const Change& change : transaction.changes) json["success"].push_back(ChangeJson(change));
  return json.dump();
}

std::string GrantRequest(Nanos ttl) {
  const int64_t seconds = std::max<int64_t>((ttl.value + 999'999'999) / 1'000'000'000, 1);
  return Json{{"TTL", std::to_string(seconds)}}.dump();
}

std::string LeaseRequest(NodeLeaseId lease) {
  return Json{{"ID", std::to_string(lease.value)}}.dump();
}

std::string WatchRequest(std::string_view prefix, int64_t from_revision) {
  const Json create{{"key", EncodeBase64(prefix)},
                    {"range_end", EncodeBase64(EndOf(prefix))},
                    {"start_revision", std::to_string(from_revision)}};
  return Json{{"create_request", create}}.dump();
}

Result<Snapshot> ParseSnapshot(const HttpReply& answer) {
  KV_ASSIGN_OR_RETURN(const Json json, Parse(answer));
  Snapshot snapshot{.revision = RevisionOf(json), .entries = {}};
  if (snapshot.revision == 0) return Malformed();
  for (const Json& item : Member(json, "kvs")) {
    auto entry = EntryOf(item);
    if (!entry) return Malformed();
    snapshot.entries.push_back(*std::move(entry));
  }
  return snapshot;
}

Result<TransactionOutcome> ParseOutcome(const HttpReply& answer) {
  KV_ASSIGN_OR_RETURN(const Json json, Parse(answer));
  const Json& succeeded = Member(json, "succeeded");
  const TransactionOutcome outcome{.succeeded = succeeded.is_boolean() && succeeded.get<bool>(),
                                   .revision = RevisionOf(json)};
  if (outcome.revision == 0) return Malformed();
  return outcome;
}

Result<GrantedLease> ParseGrant(const HttpReply& answer) {
  KV_ASSIGN_OR_RETURN(const Json json, Parse(answer));
  const GrantedLease lease{.id = {Number(Member(json, "ID"))},
                           .ttl = Seconds(Number(Member(json, "TTL")))};
  if (lease.id == NodeLeaseId()) return Malformed();
  return lease;
}

Status ParseKeepAlive(const HttpReply& answer) {
  HttpReply first = answer;
  first.body = answer.body.substr(0, answer.body.find('\n'));
  KV_ASSIGN_OR_RETURN(const Json json, Parse(first));
  const Json& result = Member(json, "result");
  if (!result.is_object()) return Malformed();
  if (Number(Member(result, "TTL")) > 0) return Status();
  return Status(Code::kNotFound, "etcd: the lease has run out");
}

Status ParseRevoke(const HttpReply& answer) {
  const auto json = Parse(answer);
  return json.ok() || json.code() == Code::kNotFound ? Status() : json.status();
}

bool HasWatchOutcome(const std::string& body) {
  if (body.empty() || body.back() != '\n') return false;
  const std::vector<Json> messages = Messages(body);
  return std::any_of(messages.begin(), messages.end(), IsOutcome);
}

Result<WatchBatch> ParseWatch(const HttpReply& answer) {
  WatchBatch batch;
  for (const Json& message : Messages(answer.body)) {
    if (Member(message, "error").is_object()) return ErrorOf(Member(message, "error"));
    const Json& result = Member(message, "result");
    if (Number(Member(result, "compact_revision")) > 0) {
      return Status(Code::kNotFound, "etcd: that revision is compacted: read the range anew");
    }
    if (Member(result, "canceled").is_boolean()) {
      return Status(Code::kUnavailable, "etcd: " + Text(Member(result, "cancel_reason")));
    }
    if (Member(result, "events").is_array()) {
      KV_RETURN_IF_ERROR(AddEvents(Member(result, "events"), batch));
    }
  }
  const bool refused = answer.status != 0 && answer.status != 200;
  if (batch.events.empty() && refused) {
    return Status(Code::kUnavailable, "etcd: HTTP status " + std::to_string(answer.status));
  }
  return batch;
}

}  // namespace cairn::kv
