// The makers of the sources behind OpenTrace(); private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tools/trace/trace_source.h"

namespace cairn::tools {

using SourceResult = kv::Result<std::unique_ptr<TraceSource>>;

// `format` is not kAuto.
SourceResult OpenBlockSource(const std::string& path, const TraceOptions& options);
SourceResult OpenSessionSource(const std::string& path, const TraceOptions& options);
SourceResult OpenTextSource(const std::string& path, const TraceOptions& options);

// The same requests with `factor` blocks joined into one; a partial tail of full blocks is dropped
// unless it ends the prompt.
std::unique_ptr<TraceSource> JoinBlocks(std::unique_ptr<TraceSource> source, uint64_t factor);

// The number that stands for a session's name; never 0.
uint64_t SessionNumber(std::string_view name);

// The time of a trace, which never runs back: simulators age blocks by it. `told_ms` is what a line
// says, if it says anything.
class TraceClock {
 public:
  // What is wrong with the line's time, in which case it is taken as late as the one before. Empty:
  // nothing.
  std::string Advance(std::optional<int64_t> told_ms);
  int64_t now_ms() const { return now_ms_; }

 private:
  int64_t now_ms_ = 0;
};

}  // namespace cairn::tools
