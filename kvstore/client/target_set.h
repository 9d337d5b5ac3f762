// The targets that a client knows, and how each has behaved lately.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "kvstore/client/target_choice.h"
#include "kvstore/client/target_port.h"
#include "kvstore/io/clock.h"

namespace cairn::kv {

// Loop thread only. The ports and the clock must outlive it.
class TargetSet {
 public:
  TargetSet(Clock& clock, std::vector<TargetPort*> ports);

  // Others from now on. What was found before may go on being used: the ports still live.
  void Use(std::vector<TargetPort*> ports);

  // Null for a target that is not there: gone, or replaced by another.
  TargetPort* Find(TargetId id) const;
  const std::vector<TargetPort*>& ports() const { return ports_; }
  const std::vector<TargetId>& ids() const { return ids_; }

  std::vector<TargetState> States() const;
  size_t live_count() const;
  bool IsLive(TargetId id) const;

  // A target that fails several times in a row takes no writes for a while.
  void Note(TargetId id, const Status& outcome);
  // Who says which targets are slow; nobody at first. What it refers to must outlive this, or be
  // taken back.
  void set_is_slow(std::function<bool(TargetId)> is_slow) { is_slow_ = std::move(is_slow); }
  bool IsSlow(TargetId id) const { return is_slow_ && is_slow_(id); }
  // Takes no writes for a while, as of now.
  void Suspect(TargetId id);

  // The shards of the stripe that may be there.
  uint32_t ShardsAtHand(const Manifest& manifest) const;
  // Asks each target whether it holds its shard: what TargetPort::Holds says, by shard, and
  // kUnavailable for targets that are not there. `manifest` must live until the task is done.
  Task<std::vector<Status>> AskShards(const Manifest& manifest) const;
  // By their answers: none of its shards is lost, and one more than it takes is surely there. Slow
  // targets are not asked as far as the others are enough for that.
  Task<bool> IsWhole(const Manifest& manifest) const;
  // By their answers: more of its shards are lost than parity replaces.
  Task<bool> IsLost(const Manifest& manifest) const;

 private:
  struct Health {
    uint32_t failures = 0;  // In a row.
    Instant suspect_until;
  };

  // But for at most `unasked` slow ones.
  Task<std::vector<Status>> AskShards(const Manifest& manifest, size_t unasked) const;

  Clock& clock_;
  std::vector<TargetPort*> ports_;  // By ascending id.
  std::vector<TargetId> ids_;
  std::map<TargetId, Health> health_;
  std::function<bool(TargetId)> is_slow_;
};

}  // namespace cairn::kv
