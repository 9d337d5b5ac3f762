// Posts as much as credits, slots and the depth of the queue allow, whenever one of them changes.
#include "kvstore/rdma/rdma_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cairn::kv {
namespace {

// Both sides know these: they are part of the protocol's version.
constexpr size_t kFragmentSize = 8192;
constexpr uint32_t kCredits = 32;
// For fragments that only bring credits: they take none.
constexpr uint32_t kSpareReceives = 4;

constexpr uint32_t kReceives = kCredits + kSpareReceives;
constexpr uint32_t kSendSlots = 32;
constexpr uint32_t kSlots = kReceives + kSendSlots;
constexpr uint32_t kTransfersMax = 8;
constexpr uint32_t kSendsMax = kSendSlots + kTransfersMax + 1;  // And a probe.
// Small enough that a transfer can be stopped soon.
constexpr uint64_t kTransferSize = 256 * kKiB;

// Before each fragment.
struct FragmentHead {
  uint16_t credits = 0;
  uint16_t flags = 0;
  uint32_t size = 0;
};
constexpr size_t kRoom = kFragmentSize - sizeof(FragmentHead);
constexpr uint16_t kLast = 1;         // Of its frame.
constexpr uint16_t kCreditsOnly = 2;  // Belongs to no frame.

}  // namespace

Result<std::unique_ptr<RdmaQueue>> RdmaQueue::Create(rdma_cm_id& id, RdmaDevice& device,
                                                     Loop& loop, RdmaNetworkStats& stats) {
  auto queue = std::unique_ptr<RdmaQueue>(new RdmaQueue(id, device, loop, stats));
  Status opened = queue->Open();
  if (opened.ok()) return queue;
  queue->Close();
  return opened;
}

RdmaQueue::RdmaQueue(rdma_cm_id& id, RdmaDevice& device, Loop& loop, RdmaNetworkStats& stats)
    : id_(id), device_(device), loop_(loop), stats_(stats), buffers_(kSlots * kFragmentSize),
      credits_(kCredits) {}

RdmaQueue::~RdmaQueue() {
  KV_CHECK(closing_);
  if (completions_ != nullptr) KV_CHECK(ibv_destroy_cq(completions_) == 0);
  if (buffers_registration_ != nullptr) KV_CHECK(ibv_dereg_mr(buffers_registration_) == 0);
}

Status RdmaQueue::Open() {
  const auto fail = [](const char* what) {
    return Status(Code::kOverloaded, std::string("the RDMA device gives no ") + what + ": " +
                                         std::strerror(errno));
  };
  completions_ =
      ibv_create_cq(&device_.context(), static_cast<int>(kReceives + kSendsMax),
                    static_cast<RdmaCompletionHandler*>(this), &device_.channel(), 0);
  if (completions_ == nullptr) return fail("completion queue");
  if (ibv_req_notify_cq(completions_, 0) != 0) return fail("notification");
  buffers_registration_ = ibv_reg_mr(&device_.domain(), buffers_.data(), buffers_.size(),
                                     IBV_ACCESS_LOCAL_WRITE);
  if (buffers_registration_ == nullptr) return fail("registered memory (see ulimit -l)");
  ibv_qp_init_attr asked{};
  asked.send_cq = completions_;
  asked.recv_cq = completions_;
  asked.qp_type = IBV_QPT_RC;
  asked.cap = {.max_send_wr = kSendsMax, .max_recv_wr = kReceives, .max_send_sge = 1,
               .max_recv_sge = 1, .max_inline_data = 0};
  if (rdma_create_qp(&id_, &device_.domain(), &asked) != 0) return fail("queue pair");
  has_pair_ = true;
  for (uint32_t slot = 0; slot < kReceives; ++slot) PostReceive(slot);
  for (uint32_t slot = kReceives; slot < kSlots; ++slot) free_slots_.push_back(slot);
  return closing_ ? fail("place for receives") : Status();
}

void RdmaQueue::Start() {
  started_ = true;
  Pump();
}

void RdmaQueue::Begin(RdmaWork& work) {
  if (closing_) {
    work.done.Set();
    return;
  }
  queue_.push_back(&work);
  Pump();
}

void RdmaQueue::Withdraw(RdmaWork& work) {
  const auto found = std::find(queue_.begin(), queue_.end(), &work);
  if (found == queue_.end()) return;
  // A frame of which something was sent must be ended, or the next one would be taken for its end.
  if (work.kind == RdmaWork::Kind::kSend && work.posted > 0) return;
  queue_.erase(found);
  work.stopped = true;
  if (work.in_flight == 0) Finish(work, false);
  Pump();
}

void RdmaQueue::Finish(RdmaWork& work, bool ok) {
  if (work.done.is_set()) return;
  work.ok = ok;
  work.done.Set();
}

void RdmaQueue::Close() {
  if (closing_) return;
  closing_ = true;
  if (has_pair_) {
    rdma_disconnect(&id_);  // The peer hears of it; fails when there is no connection.
    rdma_destroy_qp(&id_);
  }
  for (RdmaWork* const work : queue_) Finish(*work, false);
  for (const Posted& posted : posted_) {
    if (posted.transfer != nullptr) Finish(*posted.transfer, false);
  }
  queue_.clear();
  posted_.clear();
  Wake();
}

void RdmaQueue::Wake() {
  if (wake_.has_value()) wake_->Set();
}

// --- Posting ------------------------------------------------------------------------------------

void RdmaQueue::Pump() {
  if (!started_) return;
  while (!closing_ && !queue_.empty()) {
    if (!PostSome(*queue_.front())) break;
    if (!closing_) queue_.pop_front();
  }
  if (!closing_ && owed_ >= kCredits / 2 && !free_slots_.empty()) PostCredits();
}

bool RdmaQueue::PostSome(RdmaWork& work) {
  return work.kind == RdmaWork::Kind::kSend ? PostFragments(work) : PostTransfers(work);
}

bool RdmaQueue::PostFragments(RdmaWork& work) {
  while (work.posted < work.frame.size()) {
    if (closing_ || credits_ == 0 || free_slots_.empty()) return false;
    --credits_;
    const size_t size = std::min(kRoom, work.frame.size() - work.posted);
    const bool last = work.posted + size == work.frame.size();
    PostFragment(last ? kLast : uint16_t{0}, ByteSpan(work.frame).subspan(work.posted, size));
    work.posted += size;
  }
  if (!closing_) Finish(work, true);
  return true;
}

bool RdmaQueue::PostTransfers(RdmaWork& work) {
  const bool writes = work.kind == RdmaWork::Kind::kWrite;
  while (work.local_at < work.local.size() && work.remote_at < work.remote.size()) {
    if (closing_ || transfers_ == kTransfersMax) return false;
    const RdmaWork::LocalPiece& here = work.local[work.local_at];
    const RemotePiece& there = work.remote[work.remote_at];
    const uint64_t size = std::min(
        {here.size - work.local_used, there.size - work.remote_used, kTransferSize});
    ibv_sge piece{.addr = here.address + work.local_used, .length = static_cast<uint32_t>(size),
                  .lkey = here.key};
    ibv_send_wr request{};
    request.opcode = writes ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = there.address + work.remote_used;
    request.wr.rdma.rkey = there.key;
    ++work.in_flight;
    ++transfers_;
    work.posted += size;
    work.local_used += size;
    work.remote_used += size;
    if (work.local_used == here.size) ++work.local_at, work.local_used = 0;
    if (work.remote_used == there.size) ++work.remote_at, work.remote_used = 0;
    ++(writes ? stats_.writes : stats_.reads);
    stats_.bytes_transferred += size;
    Post(request, {.transfer = &work});
  }
  if (work.in_flight == 0 && !closing_) Finish(work, true);
  return true;
}

void RdmaQueue::PostCredits() { PostFragment(kCreditsOnly, ByteSpan()); }

void RdmaQueue::PostFragment(uint16_t flags, ByteSpan bytes) {
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  uint8_t* const at = buffers_.data() + slot * kFragmentSize;
  const FragmentHead head{.credits = static_cast<uint16_t>(std::exchange(owed_, 0)),
                          .flags = flags,
                          .size = static_cast<uint32_t>(bytes.size())};
  std::memcpy(at, &head, sizeof(head));
  if (!bytes.empty()) std::memcpy(at + sizeof(head), bytes.data(), bytes.size());
  stats_.bytes_copied += bytes.size();
  ibv_sge piece{.addr = reinterpret_cast<uint64_t>(at),
                .length = static_cast<uint32_t>(sizeof(head) + bytes.size()),
                .lkey = buffers_registration_->lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.sg_list = &piece;
  request.num_sge = 1;
  ++stats_.sends;
  Post(request, {.slot = slot});
}

void RdmaQueue::Post(ibv_send_wr& request, Posted posted) {
  used_ = true;
  request.send_flags = IBV_SEND_SIGNALED;
  posted_.push_back(posted);
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(id_.qp, &request, &refused);
  if (error == 0) return;
  fault_ = std::string("cannot post: ") + std::strerror(error);
  Close();
}

void RdmaQueue::PostReceive(uint32_t slot) {
  if (closing_) return;
  ibv_sge piece{.addr = reinterpret_cast<uint64_t>(buffers_.data() + slot * kFragmentSize),
                .length = kFragmentSize, .lkey = buffers_registration_->lkey};
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_recv(id_.qp, &request, &refused);
  if (error == 0) return;
  fault_ = std::string("cannot post: ") + std::strerror(error);
  Close();
}

void RdmaQueue::Probe() {
  if (closing_ || !started_ || std::exchange(used_, false) || !posted_.empty()) return;
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;  // Of nothing: the peer's device acknowledges it.
  Post(request, {});
  used_ = false;
}

// --- Completions --------------------------------------------------------------------------------

void RdmaQueue::OnCompletions() {
  std::array<ibv_wc, 16> completions;
  int count = 0;
  do {
    if (closing_) return;
    count = ibv_poll_cq(completions_, static_cast<int>(completions.size()), completions.data());
    for (int i = 0; i < count && !closing_; ++i) {
      OnCompletion(completions[static_cast<size_t>(i)]);
    }
  } while (count > 0);
  Pump();
}

void RdmaQueue::OnCompletion(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) {
    fault_ = ibv_wc_status_str(completion.status);
    Close();
  } else if ((completion.opcode & IBV_WC_RECV) != 0) {
    OnReceived(static_cast<uint32_t>(completion.wr_id), completion.byte_len);
  } else {
    OnSent();
  }
}

void RdmaQueue::OnSent() {
  const Posted posted = posted_.front();
  posted_.pop_front();
  if (posted.slot != UINT32_MAX) free_slots_.push_back(posted.slot);
  if (posted.transfer == nullptr) return;
  --transfers_;
  RdmaWork& work = *posted.transfer;
  --work.in_flight;
  const bool whole = work.local_at == work.local.size();
  if (work.in_flight == 0 && (whole || work.stopped)) Finish(work, whole);
}

void RdmaQueue::OnReceived(uint32_t slot, uint32_t size) {
  used_ = true;
  FragmentHead head;
  const uint8_t* const at = buffers_.data() + slot * kFragmentSize;
  std::memcpy(&head, at, sizeof(head));
  if (size < sizeof(head) || size != sizeof(head) + head.size ||
      credits_ + head.credits > kCredits || head.flags > kCreditsOnly) {
    damaged_ = true;
    Wake();
    return;
  }
  credits_ += head.credits;
  if (head.flags == kCreditsOnly) {
    PostReceive(slot);
    return;
  }
  inbox_.push_back({.slot = slot, .size = head.size});
  Wake();
}

Task<Received> RdmaQueue::Receive(std::vector<uint8_t>& frame, size_t size_max) {
  frame.clear();
  bool last = false;
  while (!last) {
    while (inbox_.empty() && !damaged_ && !closing_) {
      Event& wake = wake_.emplace(loop_);
      co_await wake;
      wake_.reset();
    }
    if (closing_) co_return Received::kEnded;
    if (inbox_.empty()) co_return Received::kMalformed;
    const Fragment fragment = inbox_.front();
    inbox_.pop_front();
    const uint8_t* const at = buffers_.data() + fragment.slot * kFragmentSize;
    FragmentHead head;
    std::memcpy(&head, at, sizeof(head));
    last = (head.flags & kLast) != 0;
    frame.insert(frame.end(), at + sizeof(head), at + sizeof(head) + fragment.size);
    if (frame.size() > size_max) co_return Received::kMalformed;
    stats_.bytes_copied += fragment.size;
    PostReceive(fragment.slot);
    ++owed_;
    Pump();
  }
  co_return Received::kOk;
}

}  // namespace cairn::kv
