// Says to the service manager (systemd) how this process is doing.
#pragma once

#include <string_view>

namespace cairn::kv {

// Sends `state` ("READY=1", "STOPPING=1") to the socket that NOTIFY_SOCKET names, if it does. What
// fails is not told: nobody has to listen.
void NotifyServiceManager(std::string_view state);

}  // namespace cairn::kv
