// A store in another process, as if it were here: every verb over one session with its server.
//
// Bytes move by the shortest way. Gets into registered memory (NewRegion), over a unix socket, into
// segments that start on a sector and are whole sectors long: the server reads the SSD straight
// into them. All other gets: through a data lane, from the socket straight into `into` or
// `scatter`, and the checksum of each block is verified. Puts from registered memory over a unix
// socket are read by the server in place; other puts go through a data lane.
//
// No call hangs. Get has its deadline; every other call ends within `call_timeout`, with kDeadline.
// While there is no connection calls fail at once with kUnavailable, and the message says why; the
// connection is made again in the background, with namespaces attached and regions registered as
// before. Leases do not survive that: they end with the session. A call whose connection broke
// fails with kUnavailable; whether a put or a delete took effect is then not known.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/client/block_store.h"
#include "kvstore/client/store_admin.h"
#include "kvstore/control/cluster_admin.h"
#include "kvstore/io/clock.h"
#include "kvstore/os/poller.h"
#include "kvstore/os/tls.h"

namespace cairn::kv {

struct RemoteOptions {
  // "unix:/run/cairn/cairn.sock", "127.0.0.1:7400", or encrypted: "tls:store.example:7400"; then
  // the server's certificate must be for that host.
  std::string address = {};
  // Whom to trust, by default the authorities of this machine; and what to show where the server
  // asks for a certificate.
  TlsFiles tls = {};
  uint32_t data_lanes = 2;   // 1..16.
  Nanos call_timeout = Seconds(30);
  Nanos connect_timeout = Seconds(5);
  Nanos reconnect_delay_min = Millis(10);
  Nanos reconnect_delay_max = Seconds(1);
  std::string admin_token = {};  // For the verbs of StoreAdmin and ClusterAdmin over TCP.
  std::string name = {};         // For the server's log; up to 128 bytes. Empty: the process id.
};

// Everything must outlive the store.
struct RemoteParts {
  Poller& poller;
  Clock& clock;
  Log& log;
};

struct RemoteStats {
  uint64_t connects = 0;  // Successful ones.
  uint64_t disconnects = 0;
  uint64_t requests = 0;
  uint64_t requests_in_flight = 0;
  uint64_t timeouts = 0;            // Calls that got no answer in time.
  uint64_t corrupt_blocks = 0;      // Came over the wire with a wrong checksum.
  uint64_t shared_bytes_read = 0;   // Of gets, in shared memory.
  uint64_t inline_bytes_read = 0;   // Of gets, through the socket.
};

// On the poller's loop thread only; kvstore/remote/remote_client.h is the thread-safe one.
class RemoteStore final : public BlockStore, public StoreAdmin, public ClusterAdmin {
 public:
  // Connects, and fails when that fails for the first time: kUnavailable (nobody listens there, or
  // no answer came), kConflict (another version), kInvalid (the options).
  static Task<Result<std::unique_ptr<RemoteStore>>> Connect(RemoteParts parts,
                                                            RemoteOptions options);
  // Stop() must have been awaited.
  ~RemoteStore() override;
  // Fails what is in flight with kUnavailable, and disconnects. Calls after it fail. Once.
  Task<void> Stop();

  // Memory of the size asked for, rounded up to sectors: zero, present, and, over a unix socket,
  // registered with the server. It is the caller's until FreeRegion, or the end of the store.
  // After a get into it that ended with kDeadline or kUnavailable the bytes of its segments mean
  // nothing, but the memory may be used again at once: a late write does not reach it.
  // kUnavailable: not connected, or no memory. kOverloaded: the server takes no more of this one.
  Task<Result<MutableByteSpan>> NewRegion(uint64_t size);
  // Calls that name the memory must be done. kInvalid when NewRegion did not give exactly it.
  Task<Status> FreeRegion(MutableByteSpan region);

  bool connected() const;
  bool shares_memory() const;  // The server reads and writes registered memory itself.
  const RemoteStats& remote_stats() const;

  // --- BlockStore. `session` of a LeaseOrder is not looked at: the connection is the session. ---
  Task<Result<NamespaceId>> Attach(NamespaceOptions options) override;
  Task<Result<ChainHit>> Lookup(NamespaceId space, std::vector<BlockId> chain,
                                LeaseOrder lease) override;
  Task<Result<EachHit>> LookupEach(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                                   LeaseOrder lease) override;
  Task<std::vector<Status>> Renew(std::vector<LeaseId> leases, LeaseOrder order) override;
  Task<Status> Release(std::vector<LeaseId> leases, SessionId session) override;
  Task<std::vector<BlockReadResult>> Get(NamespaceId space, std::vector<BlockId> chain,
                                         std::vector<BlockRead> reads, Instant deadline) override;
  Task<std::vector<Status>> Put(ChainPut put) override;
  Task<std::vector<Status>> Touch(NamespaceId space, std::vector<BlockId> chain, uint32_t first,
                                  UnixMillis keep_until) override;
  Task<Status> Delete(NamespaceId space, std::vector<BlockId> chain, uint32_t first) override;

  // --- StoreAdmin. kInvalid where the server does not let this client. ---
  Task<Result<StoreStats>> Stats() override;
  Task<Result<std::vector<TargetInfo>>> ListTargets() override;
  Task<Result<std::vector<SpaceInfo>>> ListSpaces() override;
  Task<Result<NamespaceId>> CreateSpace(NamespaceOptions options) override;
  Task<Status> DeleteSpace(std::string name) override;
  Task<Result<BlockPage>> ListBlocks(NamespaceId space, std::string cursor,
                                     uint32_t limit) override;
  Task<Result<BlockDetails>> Inspect(NamespaceId space, std::vector<BlockId> chain, uint32_t at,
                                     bool verify) override;
  Task<Status> StartScrub(uint64_t bytes_per_second) override;
  Task<Status> StopScrub() override;
  Task<Result<MaintenanceStatus>> ScrubStatus() override;
  Task<Status> StartRepair(uint64_t bytes_per_second) override;
  Task<Status> StopRepair() override;
  Task<Result<MaintenanceStatus>> RepairStatus() override;

  // --- ClusterAdmin. kInvalid where the server does not let this client, or is no cluster's. ---
  Task<Result<ClusterInfo>> DescribeCluster() override;
  Task<Status> DrainNode(std::string node, Draining wanted) override;
  Task<Status> DrainTarget(TargetId target, Draining wanted) override;

 private:
  class Core;
  explicit RemoteStore(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
