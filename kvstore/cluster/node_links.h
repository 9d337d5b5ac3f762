// The network of a node whose peers come and go: what a cluster needs beside Network.
#pragma once

#include <string>
#include <vector>

#include "kvstore/io/network.h"
#include "kvstore/io/payload_memory.h"

namespace cairn::kv {

// Loop thread only.
class NodeLinks {
 public:
  virtual ~NodeLinks() = default;

  // Called once, when it is known who this node is. The network lives as long as this.
  virtual Result<Network*> Open(NodeId self) = 0;
  // After Open: whom to tell of memory that payloads often lie in; null: nobody.
  virtual PayloadMemory* payload_memory() { return nullptr; }
  // Where `peer` is reached, best first, from the next connection on: one address at least. Told
  // when they are new only.
  virtual Status SetPeer(NodeId peer, const std::vector<std::string>& addresses) = 0;
  // Ends all calls, either way; later ones fail. After Open, once.
  virtual Task<void> Stop() = 0;
};

}  // namespace cairn::kv
