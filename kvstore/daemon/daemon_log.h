// Log lines on standard error: text for people, or one JSON object a line for machines.
#pragma once

#include <memory>
#include <string_view>

#include "kvstore/base/log.h"
#include "kvstore/config/daemon_config.h"

namespace cairn::kv {

// Times are UTC. A JSON line has "time", "level" and "message"; it is valid whatever the message
// holds.
class DaemonLog final : public Log {
 public:
  explicit DaemonLog(LogConfig config);
  ~DaemonLog() override;

  void Write(LogLevel level, std::string_view message) override;
  // Thread-safe.
  void SetLevel(LogLevel level);

 private:
  class Lines;
  const LogFormat format_;
  const std::unique_ptr<Lines> lines_;
};

}  // namespace cairn::kv
