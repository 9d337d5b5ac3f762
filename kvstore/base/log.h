// Where components say what happened, for people; what machines watch are the counters.
#pragma once

#include <string>
#include <string_view>

namespace cairn::kv {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Thread-safe. Binaries give an implementation; components get a reference.
class Log {
 public:
  virtual ~Log() = default;
  virtual void Write(LogLevel level, std::string_view message) = 0;

  void Debug(std::string_view message) { Write(LogLevel::kDebug, message); }
  void Info(std::string_view message) { Write(LogLevel::kInfo, message); }
  void Warning(std::string_view message) { Write(LogLevel::kWarning, message); }
  void Error(std::string_view message) { Write(LogLevel::kError, message); }
};

// Drops everything.
class NullLog final : public Log {
 public:
  void Write(LogLevel, std::string_view) override {}
};

}  // namespace cairn::kv
