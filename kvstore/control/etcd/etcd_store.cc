// Each call is one POST on a worker.
#include "kvstore/control/etcd/etcd_store.h"

#include <memory>
#include <optional>
#include <utility>

#include "kvstore/control/etcd/etcd_codec.h"

namespace cairn::kv {
namespace {

using Resend = EtcdHttp::Resend;

}  // namespace

Result<std::unique_ptr<EtcdStore>> EtcdStore::Create(Clock& clock, Workers& workers,
                                                     const EtcdOptions& options) {
  if (options.endpoints.empty()) return Status(Code::kInvalid, "etcd: no endpoint is given");
  for (const std::string& endpoint : options.endpoints) {
    if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) {
      return Status(Code::kInvalid, "etcd: an endpoint is like https://host:2379, not '" +
                                        endpoint + "'");
    }
  }
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return Status(Code::kInvalid, "etcd: a certificate and its key are given together");
  }
  return std::unique_ptr<EtcdStore>(new EtcdStore(clock, workers, options));
}

Task<Result<HttpReply>> EtcdStore::Post(std::string path, std::string body, Instant deadline,
                                         Resend resend, EtcdHttp::Enough enough) {
  const Nanos left = deadline - clock_.Now();
  if (left <= Nanos{0}) co_return Status(Code::kDeadline, "etcd: no time left");
  std::optional<Result<HttpReply>> answer;
  const std::function<void()> call = [&] {
    answer.emplace(http_.Post(path, body, left, resend, enough));
  };
  co_await workers_.Run(call);
  co_return std::move(*answer);
}

Task<Result<Snapshot>> EtcdStore::Range(std::string prefix, Instant deadline) {
  auto answer =
      co_await Post("/v3/kv/range", RangeRequest(prefix), deadline, Resend::kFreely, nullptr);
  if (!answer.ok()) co_return answer.status();
  co_return ParseSnapshot(answer.value());
}

Task<Result<TransactionOutcome>> EtcdStore::Commit(Transaction transaction, Instant deadline) {
  KV_CO_RETURN_IF_ERROR(CheckTransaction(transaction));
  auto answer = co_await Post("/v3/kv/txn", TransactionRequest(transaction), deadline,
                              Resend::kUnsent, nullptr);
  if (!answer.ok()) co_return answer.status();
  co_return ParseOutcome(answer.value());
}

Task<Result<GrantedLease>> EtcdStore::Grant(Nanos ttl, Instant deadline) {
  auto answer =
      co_await Post("/v3/lease/grant", GrantRequest(ttl), deadline, Resend::kFreely, nullptr);
  if (!answer.ok()) co_return answer.status();
  co_return ParseGrant(answer.value());
}

Task<Status> EtcdStore::KeepAlive(NodeLeaseId lease, Instant deadline) {
  auto answer =
      co_await Post("/v3/lease/keepalive", LeaseRequest(lease), deadline, Resend::kFreely, nullptr);
  if (!answer.ok()) co_return answer.status();
  co_return ParseKeepAlive(answer.value());
}

Task<Status> EtcdStore::Revoke(NodeLeaseId lease, Instant deadline) {
  auto answer =
      co_await Post("/v3/lease/revoke", LeaseRequest(lease), deadline, Resend::kFreely, nullptr);
  if (!answer.ok()) co_return answer.status();
  co_return ParseRevoke(answer.value());
}

Task<Result<WatchBatch>> EtcdStore::Watch(std::string prefix, int64_t from_revision,
                                          Instant deadline) {
  if (from_revision < 1) {
    co_return Status(Code::kInvalid, "a watch begins at revision 1 or later");
  }
  const EtcdHttp::Enough enough = &HasWatchOutcome;
  auto answer = co_await Post("/v3/watch", WatchRequest(prefix, from_revision), deadline,
                              Resend::kFreely, enough);
  if (!answer.ok()) co_return answer.status();
  auto batch = ParseWatch(answer.value());
  if (batch.ok() && batch.value().next_revision == 0) batch.value().next_revision = from_revision;
  co_return batch;
}

}  // namespace cairn::kv
