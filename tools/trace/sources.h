// The makers of the sources behind OpenTrace(); private to this folder.
#pragma once

#include <memory>
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

}  // namespace cairn::tools
