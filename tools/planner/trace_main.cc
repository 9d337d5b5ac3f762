// The program cairn-trace: `cairn trace` alone.
#include "tools/planner/commands.h"

int main(int argc, char** argv) { return cairn::tools::RunTrace(argc, argv); }
