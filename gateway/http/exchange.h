// One request being answered: the handler's side of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gateway/http/message.h"

namespace cairn::gateway {

// Thread-safe, and never blocks. Shared by the connection and by whoever produces the answer (an
// engine thread, say), since either may be the last to let go.
//
// An answer is either one Respond, or StartStream, any number of Writes, and Finish. What comes
// after the end, or after the client has gone, is dropped.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual void Respond(Response response) = 0;

  // Sends the head. From now on `keep_alive` goes out whenever nothing else did for a while.
  virtual void StartStream(Response head, std::string_view keep_alive) = 0;
  // Queues a piece of the body. False when nobody will read it: the client has gone, or reads so
  // slowly that the buffer is full (which then counts as gone). Memory stays bounded.
  virtual bool Write(std::string_view bytes) = 0;
  virtual void Finish() = 0;

  // Calls `callback` once when the client goes before the end; at once if it has gone already.
  // Called on any thread, with no lock held. Not called after the end. At most one per exchange.
  virtual void WhenGone(std::function<void()> callback) = 0;
};

}  // namespace cairn::gateway
