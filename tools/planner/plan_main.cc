// The program cairn-plan: `cairn plan` alone.
#include "tools/planner/commands.h"

int main(int argc, char** argv) { return cairn::tools::RunPlan(argc, argv); }
