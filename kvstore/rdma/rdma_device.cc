// One completion channel a device; queues say who they belong to.
#include "kvstore/rdma/rdma_device.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

constexpr int kReadsMax = 16;

std::string GidText(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
  return text.data();
}

std::string_view GidKind(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_IB: return "InfiniBand";
    case IBV_GID_TYPE_ROCE_V1: return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2: return "RoCE v2";
    default: return "of an unknown kind";
  }
}

// "index 1 (RoCE v2, ::ffff:10.77.0.1)"; a port has the same GID once for each kind.
std::string FindGid(ibv_context& context, uint8_t port, int entries, const ibv_gid& wanted) {
  std::string found;
  for (int i = 0; i < entries; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(&context, port, static_cast<uint32_t>(i), &entry, 0) != 0) continue;
    if (std::memcmp(entry.gid.raw, wanted.raw, sizeof(wanted.raw)) != 0) continue;
    if (!found.empty()) found += " or ";
    found += "index " + std::to_string(i) + " (" + std::string(GidKind(entry.gid_type)) + ")";
  }
  return found.empty() ? "in no table" : found;
}

}  // namespace

Result<std::unique_ptr<RdmaDevice>> RdmaDevice::Open(ibv_context& context, const Parts& parts) {
  const auto fail = [&context](const char* what) {
    return Status(Code::kOverloaded, std::string("RDMA device ") +
                                         ibv_get_device_name(context.device) + " gives no " + what +
                                         ": " + std::strerror(errno));
  };
  ibv_device_attr attributes{};
  if (ibv_query_device(&context, &attributes) != 0) return fail("answer");
  Domain domain(ibv_alloc_pd(&context));
  if (domain == nullptr) return fail("protection domain");
  Channel channel(ibv_create_comp_channel(&context));
  if (channel == nullptr) return fail("completion channel");
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  const int reads =
      std::min({attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom, kReadsMax});
  return std::unique_ptr<RdmaDevice>(new RdmaDevice(context, std::move(domain), std::move(channel),
                                                    static_cast<uint8_t>(std::max(reads, 1)),
                                                    parts));
}

RdmaDevice::RdmaDevice(ibv_context& context, Domain domain, Channel channel, uint8_t reads_max,
                       const Parts& parts)
    : context_(context), domain_(std::move(domain)), channel_(std::move(channel)),
      reads_max_(reads_max), memory_(*domain_, parts.regions, parts.options, parts.stats) {
  parts.events.Watch(channel_->fd, [this] { TakeEvents(); });
}

void RdmaDevice::TakeEvents() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    KV_CHECK(ibv_req_notify_cq(queue, 0) == 0);
    static_cast<RdmaCompletionHandler*>(context)->OnCompletions();
  }
}

std::string RdmaDevice::Describe(uint8_t port, const ibv_gid& gid) const {
  std::string text = std::string(ibv_get_device_name(context_.device)) + " port " +
                     std::to_string(port) + ": GID " + GidText(gid);
  ibv_port_attr attributes{};
  if (ibv_query_port(&context_, port, &attributes) == 0) {
    text += ", " + FindGid(context_, port, attributes.gid_tbl_len, gid) + "; MTU " +
            std::to_string(128 << attributes.active_mtu) + "; port " +
            ibv_port_state_str(attributes.state);
  }
  text += "; host memory: regions stay registered, the rest is registered for each call, and "
          "copied up to 64 KiB";
  text += memory_.takes_dmabuf()        ? "; accelerators' memory: by dma-buf"
          : memory_.takes_peer_memory() ? "; accelerators' memory: by peer-memory module"
                                        : "; accelerators' memory: through pinned buffers, since "
                                          "the device takes no dma-buf and no peer-memory module "
                                          "is loaded";
  return text;
}

Result<RdmaDevice*> RdmaDevices::Of(ibv_context& context) {
  std::unique_ptr<RdmaDevice>& device = open_[&context];
  if (device == nullptr) {
    Result<std::unique_ptr<RdmaDevice>> opened = RdmaDevice::Open(context, parts_);
    if (!opened.ok()) {
      open_.erase(&context);
      return opened.status();
    }
    device = std::move(opened).value();
  }
  return device.get();
}

}  // namespace cairn::kv
