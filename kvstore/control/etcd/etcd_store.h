// A control store in etcd (3.4 or later), through its JSON gateway.
#pragma once

#include <memory>
#include <string>

#include "kvstore/control/control_store.h"
#include "kvstore/control/etcd/etcd_http.h"
#include "kvstore/io/clock.h"
#include "kvstore/io/workers.h"

namespace cairn::kv {

// Fails over between the endpoints: at once where a server cannot be reached, after a share of the
// time where it does not answer. A transaction that a server may have seen is not sent again.
// etcd's own limits stay as they are: 128 changes and 1.5 MiB a request; a lease lives for two
// seconds at least.
class EtcdStore final : public ControlStore {
 public:
  // kInvalid when the options cannot be right. `workers` runs the calls: as many at a time as it
  // has threads, and each Watch keeps one busy. Both references must outlive this.
  static Result<std::unique_ptr<EtcdStore>> Create(Clock& clock, Workers& workers,
                                                   const EtcdOptions& options);

  Task<Result<Snapshot>> Range(std::string prefix, Instant deadline) override;
  Task<Result<TransactionOutcome>> Commit(Transaction transaction, Instant deadline) override;
  Task<Result<GrantedLease>> Grant(Nanos ttl, Instant deadline) override;
  Task<Status> KeepAlive(NodeLeaseId lease, Instant deadline) override;
  Task<Status> Revoke(NodeLeaseId lease, Instant deadline) override;
  Task<Result<WatchBatch>> Watch(std::string prefix, int64_t from_revision,
                                 Instant deadline) override;

 private:
  EtcdStore(Clock& clock, Workers& workers, const EtcdOptions& options)
      : clock_(clock), workers_(workers), http_(options) {}

  Task<Result<HttpReply>> Post(std::string path, std::string body, Instant deadline,
                                EtcdHttp::Resend resend, EtcdHttp::Enough enough);

  Clock& clock_;
  Workers& workers_;
  EtcdHttp http_;
};

}  // namespace cairn::kv
