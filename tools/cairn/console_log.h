// Log lines on standard error, through spdlog.
#pragma once

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string_view>

#include "kvstore/base/log.h"

namespace cairn::tools {

class ConsoleLog final : public kv::Log {
 public:
  ConsoleLog() : logger_("cairn", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    logger_.flush_on(spdlog::level::info);
  }

  void Write(kv::LogLevel level, std::string_view message) override {
    switch (level) {
      case kv::LogLevel::kDebug: return logger_.debug(message);
      case kv::LogLevel::kInfo: return logger_.info(message);
      case kv::LogLevel::kWarning: return logger_.warn(message);
      case kv::LogLevel::kError: return logger_.error(message);
    }
  }

 private:
  spdlog::logger logger_;
};

}  // namespace cairn::tools
