// The seam to other nodes: a small body and a payload each way, and a deadline.
//
// The payload of a request is never copied on its way out, and that of an answer lands where the
// caller says. Transports: TCP (kvstore/os/tcp_network.h), RDMA (kvstore/rdma/rdma_network.h) and
// the simulated one (tests/sim); all pass tests/unit/kvstore/io/network_conformance_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "kvstore/async/task.h"
#include "kvstore/base/bytes.h"
#include "kvstore/base/result.h"
#include "kvstore/base/time.h"

namespace cairn::kv {

struct NodeId {
  uint32_t value = 0;
  auto operator<=>(const NodeId&) const = default;
};

// Messages may be lost, late, reordered or repeated, but never altered. Loop thread only.
class Network {
 public:
  virtual ~Network() = default;

  struct Outgoing {
    explicit Outgoing(Bytes message, std::vector<ByteSpan> pieces = {})
        : body(std::move(message)), payload(std::move(pieces)) {}
    uint64_t payload_size() const {
      uint64_t size = 0;
      for (const ByteSpan piece : payload) size += piece.size();
      return size;
    }

    Bytes body;
    std::vector<ByteSpan> payload;  // The caller's memory, until the task is done.
  };
  // Its payload is the first `payload_size` bytes of the call's `into`.
  struct Answer {
    explicit Answer(Bytes message, size_t landed = 0)
        : body(std::move(message)), payload_size(landed) {}

    Bytes body;
    size_t payload_size = 0;
  };
  // What a handler returns.
  struct Reply {
    explicit Reply(Bytes message, Bytes data = Bytes())
        : body(std::move(message)), payload(std::move(data)) {}

    Bytes body;
    Bytes payload;
  };

  // Sends `request` to `peer` and returns its answer. kUnavailable: the peer cannot be reached, or
  // its answer is larger than `into`. kDeadline, kOverloaded: too much is on its way to the peer.
  // kInvalid: the request is larger than the limits below. After a failure the peer may or may not
  // have acted on the request. What `into` holds then is undefined, but after the task is done,
  // whatever it returned, nothing writes to `into` or reads the payload any more.
  virtual Task<Result<Answer>> Call(NodeId peer, Outgoing request, MutableByteSpan into,
                                    Instant deadline) = 0;

  // Whether a call that is given up at its deadline disturbs no other, however long its answer
  // takes. Where the peer writes into `into` itself, the connection may have to be cut.
  virtual bool gives_up_alone() const { return true; }

  // Ends all calls that are on their way to the peer with kUnavailable, as soon as nothing uses
  // their memory; for who knows that no answer will come. Later calls connect anew.
  virtual void Abandon(NodeId peer) = 0;

  // `payload` is sector-aligned, as is that of the Reply.
  using Handler = std::function<Task<Reply>(NodeId source, Bytes body, Bytes payload)>;
  // Answers calls to this node from now on. Set once; the handler must outlive the network.
  virtual void Serve(Handler handler) = 0;
};

// The largest body and the largest payload, of a request as of an answer.
inline constexpr uint64_t kMessageBodySizeMax = 4 * kMiB;
inline constexpr uint64_t kMessagePayloadSizeMax = 72 * kMiB;

}  // namespace cairn::kv
