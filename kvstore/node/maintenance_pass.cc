// One stripe after another; the clock says when the next may be read.
#include "kvstore/node/maintenance_pass.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cairn::kv {
namespace {

constexpr double kNanosPerSecond = 1e9;

}  // namespace

MaintenancePass::MaintenancePass(Parts parts, const char* name)
    : parts_(parts), name_(name), gate_(parts.loop) {}

Status MaintenancePass::Start(uint64_t bytes_per_second) {
  if (gate_.closed()) return Status(Code::kUnavailable, "the store is stopping");
  if (stopping_ != nullptr) {
    return Status(Code::kConflict, std::string("a ").append(name_).append(" is running"));
  }
  const uint64_t passes = status_.passes;
  shards_lost_ = 0;
  status_ = {.running = true, .bytes_per_second = bytes_per_second, .passes = passes};
  stopping_ = std::make_shared<Event>(parts_.loop);
  ended_ = std::make_shared<Event>(parts_.loop);
  gate_.Hold(Run(stopping_));
  return Status();
}

Task<void> MaintenancePass::Stop() {
  if (stopping_ == nullptr) co_return;
  stopping_->Set();
  const std::shared_ptr<Event> ended = ended_;
  Event& event = *ended;
  co_await event;
}

Task<void> MaintenancePass::Close() {
  if (stopping_ != nullptr) stopping_->Set();
  return gate_.Close();
}

Task<void> MaintenancePass::Run(std::shared_ptr<Event> stopping) {
  const Instant began = parts_.clock.Now();
  const std::vector<StripeId> stripes = co_await Plan();
  Instant next_at = parts_.clock.Now();
  for (size_t i = 0; i < stripes.size() && !stopping->is_set(); ++i) {
    const uint64_t before = status_.bytes_done;
    co_await VisitOne(stripes[i]);
    const uint64_t bytes = status_.bytes_done - before;
    NoteProgress(i + 1, stripes.size(), parts_.clock.Now() - began);
    if (status_.bytes_per_second == 0 || bytes == 0) continue;
    const double seconds =
        static_cast<double>(bytes) / static_cast<double>(status_.bytes_per_second);
    const Instant now = parts_.clock.Now();
    next_at = std::max(next_at, now - Millis(100)) +
              Nanos{static_cast<int64_t>(seconds * kNanosPerSecond)};
    if (next_at > now) co_await parts_.clock.SleepUntil(next_at, stopping.get());
  }
  if (!stopping->is_set()) {
    ++status_.passes;
    NoteProgress(1, 1, {});
  }
  if (status_.shards_damaged + status_.shards_repaired + status_.shards_failed > 0) {
    parts_.log.Info(std::string(name_)
                        .append(": damaged ")
                        .append(std::to_string(status_.shards_damaged))
                        .append(", restored ")
                        .append(std::to_string(status_.shards_repaired))
                        .append(", not restored ")
                        .append(std::to_string(status_.shards_failed))
                        .append(" shards"));
  }
  status_.running = false;
  stopping_ = nullptr;
  ended_->Set();
}

void MaintenancePass::NoteProgress(size_t done, size_t all, Nanos taken) {
  const size_t left = all - done;
  status_.bytes_left = status_.bytes_done / done * left;
  const double seconds = static_cast<double>(taken.value) / kNanosPerSecond;
  status_.seconds_left = static_cast<uint64_t>(seconds / static_cast<double>(done) *
                                               static_cast<double>(left));
  if (status_.bytes_per_second == 0) return;
  status_.seconds_left = std::max(status_.seconds_left,
                                  status_.bytes_left / status_.bytes_per_second);
}

Task<void> MaintenancePass::VisitOne(StripeId stripe) {
  const std::optional<StripeState> state = parts_.index.StateOf(stripe);
  if (!state || parts_.clock.UnixNow() >= state->expires_at || !Wants(*state)) co_return;
  auto found = co_await parts_.index.FindFiled(stripe);
  if (found.code() == Code::kNotFound) co_return;  // Removed meanwhile.
  if (!found.ok()) {
    ++status_.shards_failed;  // It was not looked at: the pass has not done all.
    co_return;
  }
  const RestoreReport report = co_await Visit(std::move(found).value());
  status_.bytes_done += report.bytes;
  status_.shards_checked += report.checked;
  status_.shards_damaged += report.damaged;
  status_.shards_repaired += report.restored;
  status_.shards_failed += report.failed;
  shards_lost_ += report.lost;
  if (report.failed > 0) {
    parts_.log.Debug(stripe.ToHex().insert(0, "not restored: ").append(": ").append(
        report.status.ToString()));
  }
}

std::vector<std::pair<StripeId, StripeState>> MaintenancePass::AllStripes() const {
  std::vector<std::pair<StripeId, StripeState>> all;
  for (size_t i = 0; i < parts_.targets.size(); ++i) {
    const auto add = [&](StripeId stripe, const StripeState& state) {
      if (!parts_.index.IsHome(stripe)) return true;
      for (size_t before = 0; before < i; ++before) {
        if (parts_.targets[before]->MayHaveFiled(stripe)) return true;
      }
      all.emplace_back(stripe, state);
      return true;
    };
    parts_.targets[i]->index().states().ForEachAfter(std::nullopt, add);
  }
  return all;
}

}  // namespace cairn::kv
