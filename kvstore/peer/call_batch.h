// Single calls that become one request of many while the one before is on its way.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "kvstore/async/event.h"
#include "kvstore/async/task.h"
#include "kvstore/base/status.h"

namespace cairn::kv {

// A lone call leaves at once; those that come meanwhile leave together. Loop thread only.
template <typename Item>
class CallBatch {
 public:
  // A status for each item, in order.
  using Send = std::function<Task<std::vector<Status>>(std::vector<Item>)>;

  CallBatch(Loop& loop, size_t batch_max, Send send)
      : loop_(loop), batch_max_(batch_max), send_(std::move(send)) {}

  Task<Status> Add(Item item) {
    Waiting mine(loop_, std::move(item));
    queue_.push_back(&mine);
    if (leading_) {
      std::optional<Status> outcome = co_await mine.turn;
      if (outcome.has_value()) co_return std::move(*outcome);
    }
    // This call leads: it is the first of the queue, and sends for those behind it.
    leading_ = true;
    std::vector<Waiting*> batch;
    std::vector<Item> items;
    while (!queue_.empty() && batch.size() < batch_max_) {
      batch.push_back(queue_.front());
      items.push_back(std::move(queue_.front()->item));
      queue_.pop_front();
    }
    std::vector<Status> outcomes = co_await send_(std::move(items));
    for (size_t i = 1; i < batch.size(); ++i) batch[i]->turn.Set(std::move(outcomes[i]));
    leading_ = !queue_.empty();
    if (leading_) queue_.front()->turn.Set(std::nullopt);
    co_return std::move(outcomes[0]);
  }

 private:
  // Lives in the frame of its Add.
  struct Waiting {
    Waiting(Loop& loop, Item what) : item(std::move(what)), turn(loop) {}
    Item item;
    OneShot<std::optional<Status>> turn;  // Nothing: lead.
  };

  Loop& loop_;
  const size_t batch_max_;
  const Send send_;
  bool leading_ = false;
  std::deque<Waiting*> queue_;
};

}  // namespace cairn::kv
