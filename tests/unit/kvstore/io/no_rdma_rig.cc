// In place of rdma_rig.cc where the RDMA libraries are not installed.
#include "tests/unit/kvstore/io/network_rig.h"

namespace cairn::kv {

std::unique_ptr<NetworkRig> MakeRdmaRig() { return nullptr; }

}  // namespace cairn::kv
