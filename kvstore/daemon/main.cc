// The program cairnd.
#include "kvstore/daemon/daemon.h"

int main(int argc, char** argv) { return cairn::kv::RunDaemon(argc, argv); }
