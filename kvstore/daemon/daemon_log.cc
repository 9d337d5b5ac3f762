// Through spdlog, which keeps lines of several threads apart.
#include "kvstore/daemon/daemon_log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace cairn::kv {
namespace {

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

class DaemonLog::Lines {
 public:
  Lines() : logger("cairnd", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}
  spdlog::logger logger;
};

DaemonLog::DaemonLog(LogConfig config)
    : format_(config.format), lines_(std::make_unique<Lines>()) {
  const char* pattern = format_ == LogFormat::kJson
                            ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})"
                            : "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
  lines_->logger.set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
  lines_->logger.flush_on(spdlog::level::debug);
  SetLevel(config.level);
}

DaemonLog::~DaemonLog() = default;

void DaemonLog::SetLevel(LogLevel level) { lines_->logger.set_level(LevelOf(level)); }

void DaemonLog::Write(LogLevel level, std::string_view message) {
  if (!lines_->logger.should_log(LevelOf(level))) return;
  if (format_ == LogFormat::kText) return lines_->logger.log(LevelOf(level), message);
  const nlohmann::json text = std::string(message);
  lines_->logger.log(LevelOf(level),
                     std::string_view(text.dump(-1, ' ', false,
                                                nlohmann::json::error_handler_t::replace)));
}

}  // namespace cairn::kv
