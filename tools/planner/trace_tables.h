// What the pages on a trace share: private to this folder.
#pragma once

#include "tools/planner/plot.h"
#include "tools/planner/table.h"
#include "tools/planner/trace_report.h"

namespace cairn::tools {

Table BlockSizeTable(const TraceReport& report);
LineChart TtlChart(const TraceReport& report);

}  // namespace cairn::tools
