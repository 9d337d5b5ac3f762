// Requests and answers of etcd's v3 API as JSON, as its gateway speaks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvstore/control/control_store.h"
#include "kvstore/control/etcd/etcd_http.h"

namespace cairn::kv {

std::string EncodeBase64(std::string_view bytes);
std::optional<std::string> DecodeBase64(std::string_view text);

std::string RangeRequest(std::string_view prefix);
std::string TransactionRequest(const Transaction& transaction);
std::string GrantRequest(Nanos ttl);
std::string LeaseRequest(NodeLeaseId lease);
std::string WatchRequest(std::string_view prefix, int64_t from_revision);

// An error of etcd's as a Status; kUnavailable, too, when an answer is not what it should be.
Result<Snapshot> ParseSnapshot(const HttpReply& answer);
Result<TransactionOutcome> ParseOutcome(const HttpReply& answer);
Result<GrantedLease> ParseGrant(const HttpReply& answer);
Status ParseKeepAlive(const HttpReply& answer);
Status ParseRevoke(const HttpReply& answer);

// Whether the stream of a watch, as far as it has come, holds a whole message with an outcome.
bool HasWatchOutcome(const std::string& body);
// `next_revision` is 0 when nothing has happened.
Result<WatchBatch> ParseWatch(const HttpReply& answer);

}  // namespace cairn::kv
