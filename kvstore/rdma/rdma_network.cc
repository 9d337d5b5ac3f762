// Checks the options, and has silent connections probed.
#include "kvstore/rdma/rdma_network.h"

#include <utility>

#include "kvstore/os/node_options.h"

namespace cairn::kv {
namespace {

constexpr uint8_t kRetriesMax = 6;
constexpr uint8_t kAckTimeoutMax = 31;

Status CheckOptions(const RdmaNetworkOptions& options) {
  if (options.secret.empty()) {
    return {Code::kInvalid, "RDMA between nodes needs a cluster secret of at least 16 bytes"};
  }
  KV_RETURN_IF_ERROR(CheckNodeOptions(options));
  if (options.retry_count > kRetriesMax || options.not_ready_retry_count > kRetriesMax) {
    return {Code::kInvalid, "retries of a packet are at most 6: 7 means for ever"};
  }
  if (options.ack_timeout < 1 || options.ack_timeout > kAckTimeoutMax) {
    return {Code::kInvalid, "ack_timeout is 1 to 31"};
  }
  return {};
}

Result<std::vector<SocketAddress>> ParseAll(const std::vector<std::string>& texts) {
  std::vector<SocketAddress> addresses;
  for (const std::string& text : texts) {
    KV_ASSIGN_OR_RETURN(SocketAddress address, SocketAddress::Parse(text));
    if (address.is_unix()) {
      return Status(Code::kInvalid, text + " is a file: an RDMA port has an IP address");
    }
    addresses.push_back(std::move(address));
  }
  return addresses;
}

bool HasDevice() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr) return false;
  ibv_free_device_list(devices);
  return count > 0;
}

}  // namespace

Result<std::unique_ptr<RdmaNetwork>> RdmaNetwork::Create(Poller& poller, Clock& clock, Log& log,
                                                         const RdmaNetworkOptions& options) {
  KV_RETURN_IF_ERROR(CheckOptions(options));
  KV_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, ParseAll(options.addresses));
  if (!HasDevice()) return Status(Code::kUnavailable, "this machine has no RDMA device");
  KV_ASSIGN_OR_RETURN(std::unique_ptr<RdmaEvents> events, RdmaEvents::Create(poller));
  auto network = std::unique_ptr<RdmaNetwork>(
      new RdmaNetwork(poller, clock, log, options, std::move(events), addresses));
  const Status listening = network->Listen(std::move(addresses));
  if (listening.ok()) return network;
  poller.Await(network->Stop());
  return listening;
}

RdmaNetwork::RdmaNetwork(Poller& poller, Clock& clock, Log& log, const RdmaNetworkOptions& options,
                         std::unique_ptr<RdmaEvents> events, std::vector<SocketAddress> addresses)
    : options_(options),
      identity_(IdentityOf(options)),
      clock_(clock),
      events_(std::move(events)),
      devices_(RdmaDevice::Parts{*events_, regions_, options_, stats_}),
      outgoing_(Parts(poller, log), std::move(addresses)),
      incoming_(Parts(poller, log)),
      stopping_(poller.loop()),
      gate_(poller.loop()) {
  gate_.Hold(ProbeSilent());
}

RdmaNetwork::~RdmaNetwork() { KV_CHECK(gate_.closed()); }

RdmaParts RdmaNetwork::Parts(Poller& poller, Log& log) {
  return {poller, clock_, log, options_, identity_, stats_, *events_, devices_};
}

Status RdmaNetwork::Listen(std::vector<SocketAddress> addresses) {
  for (SocketAddress& address : addresses) {
    KV_ASSIGN_OR_RETURN(const uint16_t port, incoming_.Listen(std::move(address)));
    if (port_ == 0) port_ = port;
  }
  return {};
}

Status RdmaNetwork::SetPeer(NodeId peer, const std::vector<std::string>& texts) {
  KV_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, ParseAll(texts));
  if (addresses.empty()) return {Code::kInvalid, "a peer has at least one address"};
  outgoing_.SetPeer(peer, std::move(addresses));
  return {};
}

Task<Result<Network::Answer>> RdmaNetwork::Call(NodeId peer, Outgoing request,
                                                MutableByteSpan into, Instant deadline) {
  return outgoing_.Call(peer, std::move(request), into, deadline);
}

Task<void> RdmaNetwork::Stop() {
  stopping_.Set();
  Task<void> outgoing = outgoing_.Stop();
  co_await incoming_.Stop();
  co_await outgoing;
  co_await gate_.Close();
  co_await events_->Stop();
}

Task<void> RdmaNetwork::ProbeSilent() {
  while (!stopping_.is_set()) {
    co_await clock_.SleepUntil(clock_.Now() + options_.silence_max, &stopping_);
    outgoing_.Probe();
    incoming_.Probe();
  }
}

}  // namespace cairn::kv
