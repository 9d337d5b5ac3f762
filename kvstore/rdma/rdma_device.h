// One RDMA device as this process uses it.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/base/result.h"
#include "kvstore/rdma/rdma_events.h"
#include "kvstore/rdma/rdma_memory.h"
#include "kvstore/rdma/rdma_options.h"

namespace cairn::kv {

// Whose completion queues report here: it is their context.
class RdmaCompletionHandler {
 public:
  virtual ~RdmaCompletionHandler() = default;
  virtual void OnCompletions() = 0;
};

// Loop thread only.
class RdmaDevice {
 public:
  // What it is opened with. All outlive it.
  struct Parts {
    RdmaEvents& events;
    RdmaRegions& regions;
    const RdmaNetworkOptions& options;
    RdmaNetworkStats& stats;
  };
  // `context` is the connection manager's. kOverloaded when the device or the system gives no more.
  static Result<std::unique_ptr<RdmaDevice>> Open(ibv_context& context, const Parts& parts);
  RdmaDevice(const RdmaDevice&) = delete;
  RdmaDevice& operator=(const RdmaDevice&) = delete;

  ibv_context& context() { return context_; }
  ibv_pd& domain() { return *domain_; }
  ibv_comp_channel& channel() { return *channel_; }
  RdmaMemory& memory() { return memory_; }
  // Reads that may be under way on one connection, each way.
  uint8_t reads_max() const { return reads_max_; }
  // "rxe0 port 1: GID index 1 (RoCE v2, ::ffff:10.77.0.1), MTU 4096, ...", for people.
  std::string Describe(uint8_t port, const ibv_gid& gid) const;

 private:
  struct Free {
    void operator()(ibv_pd* domain) const { KV_CHECK(ibv_dealloc_pd(domain) == 0); }
    void operator()(ibv_comp_channel* channel) const {
      KV_CHECK(ibv_destroy_comp_channel(channel) == 0);
    }
  };
  using Domain = std::unique_ptr<ibv_pd, Free>;
  using Channel = std::unique_ptr<ibv_comp_channel, Free>;

  RdmaDevice(ibv_context& context, Domain domain, Channel channel, uint8_t reads_max,
             const Parts& parts);
  void TakeEvents();

  ibv_context& context_;
  const Domain domain_;
  const Channel channel_;
  const uint8_t reads_max_;
  RdmaMemory memory_;
};

// Those in use, each opened at its first connection.
class RdmaDevices {
 public:
  explicit RdmaDevices(const RdmaDevice::Parts& parts) : parts_(parts) {}

  Result<RdmaDevice*> Of(ibv_context& context);

 private:
  const RdmaDevice::Parts parts_;
  std::map<ibv_context*, std::unique_ptr<RdmaDevice>> open_;
};

}  // namespace cairn::kv
