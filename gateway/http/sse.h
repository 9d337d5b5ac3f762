// Server-sent events as text (WHATWG HTML, "Server-sent events"): pure framing.
#pragma once

#include <string>
#include <string_view>

namespace cairn::gateway {

inline constexpr std::string_view kSseContentType = "text/event-stream; charset=utf-8";
// Clients skip comments; proxies and idle timers see that the connection lives.
inline constexpr std::string_view kSseKeepAlive = ": keep-alive\n\n";

// One unnamed event. Each line of `data` becomes a data line, so that any text survives.
std::string SseEvent(std::string_view data);

}  // namespace cairn::gateway
