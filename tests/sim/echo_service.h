// A small service with every seam in it: it notes each request on its disk, and answers.
#pragma once

#include <cstdint>

#include "kvstore/io/clock.h"
#include "kvstore/io/disk.h"
#include "kvstore/io/network.h"
#include "kvstore/io/workers.h"

namespace cairn::sim {

// Answers with a status byte (zero when the note is durable), then the checksum of the request.
class EchoService {
 public:
  // All must outlive this.
  EchoService(kv::Network& network, kv::Disk& disk, kv::Workers& workers)
      : network_(network), disk_(disk), workers_(workers) {}

  void Start();
  uint64_t served() const { return served_; }

 private:
  kv::Task<kv::Network::Reply> Answer(kv::Bytes request);

  kv::Network& network_;
  kv::Disk& disk_;
  kv::Workers& workers_;
  uint64_t tail_ = 0;
  uint64_t served_ = 0;
};

}  // namespace cairn::sim
