// Frames server-sent events.
#include "gateway/http/sse.h"

namespace cairn::gateway {

std::string SseEvent(std::string_view data) {
  std::string event;
  event.reserve(data.size() + 8);
  for (;;) {
    const size_t end = data.find_first_of("\r\n");
    event.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) break;
    const bool is_pair = data.substr(end, 2) == "\r\n";
    data.remove_prefix(end + (is_pair ? 2 : 1));
  }
  event += "\n";
  return event;
}

}  // namespace cairn::gateway
