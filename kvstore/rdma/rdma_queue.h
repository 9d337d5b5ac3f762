// One queue pair: frames each way under credits, and transfers between our memory and the peer's.
//
// A frame travels in fragments, each of which takes a buffer that the receiver has posted; credits
// count them, so that a receiver is never found unprepared. What is begun is done in order: a frame
// that tells of a write is begun behind it, and gets there after it.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"
#include "kvstore/os/socket_stream.h"
#include "kvstore/rdma/rdma_device.h"
#include "kvstore/rdma/rdma_frame.h"

namespace cairn::kv {

// Something for a queue to do; stays where it is until `done` is set.
struct RdmaWork {
  enum class Kind : uint8_t { kSend, kWrite, kRead };
  struct LocalPiece {
    uint64_t address = 0;
    uint64_t size = 0;
    uint32_t key = 0;
  };

  RdmaWork(Loop& loop, Kind what) : kind(what), done(loop) {}

  const Kind kind;
  std::vector<uint8_t> frame;       // Of kSend.
  std::vector<LocalPiece> local;    // Of the others; both sides have the same size in all.
  std::vector<RemotePiece> remote;

  Event done;  // It is over, and nothing of it is in use any more; a send: it is on its way.
  bool ok = false;

  // The queue's.
  uint64_t posted = 0;     // Bytes.
  uint32_t in_flight = 0;  // Of a transfer.
  bool stopped = false;
  size_t local_at = 0;
  size_t remote_at = 0;
  uint64_t local_used = 0;  // Of the piece that is next.
  uint64_t remote_used = 0;
};

// Loop thread only. Close it, and await all work and Receive, before it is destroyed.
class RdmaQueue final : public RdmaCompletionHandler {
 public:
  // For an id that has a device and is not connected yet.
  static Result<std::unique_ptr<RdmaQueue>> Create(rdma_cm_id& id, RdmaDevice& device, Loop& loop,
                                                   RdmaNetworkStats& stats);
  ~RdmaQueue() override;

  RdmaDevice& device() { return device_; }
  // The connection is there: what was begun before is posted now.
  void Start();

  void Begin(RdmaWork& work);
  // Posts no more of it. Its `done` follows soon, with ok = false unless all of it was posted.
  void Withdraw(RdmaWork& work);
  // The next frame, whole. kMalformed: larger than `size_max`, or not made of fragments.
  Task<Received> Receive(std::vector<uint8_t>& frame, size_t size_max);
  // Has the device find out whether the peer's is still there, unless it is being used anyway.
  void Probe();

  // Ends the queue pair: from now on nothing reads or writes memory of this node through it. All
  // that was begun is done.
  void Close();
  bool closing() const { return closing_; }
  // Why the device closed it; empty when it did not.
  const std::string& fault() const { return fault_; }

  void OnCompletions() override;

 private:
  struct Posted {
    RdmaWork* transfer = nullptr;
    uint32_t slot = UINT32_MAX;
  };

  RdmaQueue(rdma_cm_id& id, RdmaDevice& device, Loop& loop, RdmaNetworkStats& stats);
  Status Open();

  void Pump();
  // True when it is posted whole. False: something has to come free first.
  bool PostSome(RdmaWork& work);
  bool PostFragments(RdmaWork& work);
  bool PostTransfers(RdmaWork& work);
  void PostFragment(uint16_t flags, ByteSpan bytes);
  void PostCredits();
  void PostReceive(uint32_t slot);
  void Post(ibv_send_wr& request, Posted posted);
  void Finish(RdmaWork& work, bool ok);
  void OnCompletion(const ibv_wc& completion);
  void OnSent();
  void OnReceived(uint32_t slot, uint32_t size);
  void Wake();

  rdma_cm_id& id_;
  RdmaDevice& device_;
  Loop& loop_;
  RdmaNetworkStats& stats_;
  ibv_cq* completions_ = nullptr;
  bool has_pair_ = false;
  bool started_ = false;
  bool closing_ = false;
  bool used_ = false;  // Since the last Probe.
  std::string fault_;

  Bytes buffers_;  // Slots to receive into, then slots to send from.
  ibv_mr* buffers_registration_ = nullptr;
  std::vector<uint32_t> free_slots_;
  std::deque<RdmaWork*> queue_;
  std::deque<Posted> posted_;  // In the order in which they will be done.
  uint32_t transfers_ = 0;     // Of `posted_`.
  uint32_t credits_;           // Buffers that the peer has for us.
  uint32_t owed_ = 0;          // Buffers posted again, of which the peer does not know.

  struct Fragment {
    uint32_t slot = 0;
    uint32_t size = 0;
  };
  std::deque<Fragment> inbox_;
  bool damaged_ = false;  // A fragment came that makes no sense.
  std::optional<Event> wake_;
};

}  // namespace cairn::kv
