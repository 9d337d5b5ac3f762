// S3-FIFO: which keys to keep within a limit of bytes. Pure; it holds no values.
//
// Three queues (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023): what is
// new waits in a small one, what is asked for again moves to the main one, and a ghost remembers
// the keys that left the small one unused, so that they go to the main one if they come back. A
// scan passes through the small queue and leaves the main one as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "kvstore/base/check.h"

namespace cairn::kv {

template <typename Key>
class S3Fifo {
 public:
  // Kept entries have at most `bytes_max` together, remembered ones at most as much again (the
  // ghost holds keys only, and no more than kGhostKeysMax of them).
  explicit S3Fifo(uint64_t bytes_max) : bytes_max_(bytes_max), small_max_(bytes_max / 10) {}

  static constexpr size_t kGhostKeysMax = 65536;

  bool Contains(const Key& key) const {
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.queue != Queue::kGhost;
  }

  // The key is asked for. True when it is kept; that counts as a use.
  bool Hit(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.queue == Queue::kGhost) return false;
    found->second.uses = std::min<uint8_t>(kUsesMax, static_cast<uint8_t>(found->second.uses + 1));
    return true;
  }

  // True when the ghost remembers the key. Otherwise it does from now on, as of `bytes`. The key
  // must not be kept.
  bool Seen(const Key& key, uint64_t bytes) {
    const auto found = entries_.find(key);
    if (found != entries_.end()) return true;
    if (bytes <= bytes_max_) Haunt(key, bytes);
    return false;
  }

  // Keeps the key, which is not kept so far, and tells in `evicted` which ones had to go for it.
  // False, and nothing changes, when it is larger than everything together may be.
  bool Admit(const Key& key, uint64_t bytes, std::vector<Key>& evicted) {
    KV_CHECK(!Contains(key));
    if (bytes > bytes_max_) return false;
    const auto ghost = entries_.find(key);
    const Queue queue = ghost == entries_.end() ? Queue::kSmall : Queue::kMain;
    if (ghost != entries_.end()) Remove(ghost);
    while (small_.bytes + main_.bytes + bytes > bytes_max_) EvictOne(evicted);
    Push(key, queue, bytes, 0);
    return true;
  }

  // Forgets the key wholly. Fine when it is not there.
  void Erase(const Key& key) {
    const auto found = entries_.find(key);
    if (found != entries_.end()) Remove(found);
  }

  uint64_t bytes() const { return small_.bytes + main_.bytes; }
  uint64_t bytes_max() const { return bytes_max_; }
  size_t ghost_keys() const { return ghost_.keys.size(); }

 private:
  static constexpr uint8_t kUsesMax = 3;
  static constexpr uint8_t kUsesToStay = 2;  // In the small queue, to move to the main one.

  enum class Queue : uint8_t { kSmall, kMain, kGhost };
  struct Entry {
    Queue queue = Queue::kSmall;
    uint8_t uses = 0;
    uint64_t bytes = 0;
    typename std::list<Key>::iterator place;
  };
  using Entries = std::map<Key, Entry>;
  struct Fifo {
    std::list<Key> keys;  // The front is the newest.
    uint64_t bytes = 0;
  };

  Fifo& Of(Queue queue) {
    return queue == Queue::kSmall ? small_ : queue == Queue::kMain ? main_ : ghost_;
  }

  void Push(const Key& key, Queue queue, uint64_t bytes, uint8_t uses) {
    Fifo& fifo = Of(queue);
    fifo.keys.push_front(key);
    fifo.bytes += bytes;
    const Entry entry{.queue = queue, .uses = uses, .bytes = bytes, .place = fifo.keys.begin()};
    entries_.insert_or_assign(key, entry);
  }

  void Remove(typename Entries::iterator at) {
    Fifo& fifo = Of(at->second.queue);
    fifo.bytes -= at->second.bytes;
    fifo.keys.erase(at->second.place);
    entries_.erase(at);
  }

  void Haunt(const Key& key, uint64_t bytes) {
    Push(key, Queue::kGhost, bytes, 0);
    while (ghost_.bytes > bytes_max_ || ghost_.keys.size() > kGhostKeysMax) {
      Remove(entries_.find(ghost_.keys.back()));
    }
  }

  // Takes one key out, or moves keys on until one is.
  void EvictOne(std::vector<Key>& evicted) {
    const size_t before = evicted.size();
    while (evicted.size() == before) {
      if (small_.keys.empty() || (small_.bytes <= small_max_ && !main_.keys.empty())) {
        PassMain(evicted);
      } else {
        PassSmall(evicted);
      }
    }
  }

  void PassSmall(std::vector<Key>& evicted) {
    const auto at = entries_.find(small_.keys.back());
    const Key key = at->first;
    const Entry entry = at->second;
    Remove(at);
    if (entry.uses >= kUsesToStay) {
      Push(key, Queue::kMain, entry.bytes, 0);
      return;
    }
    evicted.push_back(key);
    Haunt(key, entry.bytes);
  }

  void PassMain(std::vector<Key>& evicted) {
    const auto at = entries_.find(main_.keys.back());
    const Key key = at->first;
    const Entry entry = at->second;
    Remove(at);
    if (entry.uses > 0) {
      Push(key, Queue::kMain, entry.bytes, static_cast<uint8_t>(entry.uses - 1));
      return;
    }
    evicted.push_back(key);
  }

  const uint64_t bytes_max_;
  const uint64_t small_max_;
  Entries entries_;  // Of all three queues.
  Fifo small_;
  Fifo main_;
  Fifo ghost_;
};

}  // namespace cairn::kv
