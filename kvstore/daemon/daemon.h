// The life of one `cairnd` process: flags, start, signals, stop.
#pragma once

namespace cairn::kv {

// Exit codes: 0 stopped cleanly or nothing to do, 1 failed, 2 wrong usage or configuration. Blocks
// signals in this thread and all that it starts: call it from main, first thing.
int RunDaemon(int argc, char** argv);

}  // namespace cairn::kv
