// One request after another against a real store, each call waited for and timed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvstore/client/client.h"

namespace cairn::tools {

struct DriverCounts {
  uint64_t blocks_read = 0;
  uint64_t blocks_lost = 0;  // Found by Lookup, and gone before Get came.
  uint64_t puts_failed = 0;  // Blocks.
  std::vector<int64_t> lookup_nanos = {};
  std::vector<int64_t> get_nanos = {};  // Of a whole request.
  std::vector<int64_t> put_nanos = {};
};

class StoreDriver {
 public:
  // `client` must outlive it.
  StoreDriver(kv::Client& client, kv::NamespaceId space, uint64_t block_bytes);

  // Looks up the first `prompt_blocks` of the chain, reads and verifies what is there (if `read`),
  // and puts the rest. Returns how many blocks were hit. kCorrupt: a wrong byte; the message says
  // which.
  kv::Result<uint64_t> Run(std::span<const uint64_t> chain, uint64_t prompt_blocks,
                           bool read = true);

  const DriverCounts& counts() const { return counts_; }

 private:
  kv::Result<uint64_t> Lookup();
  kv::Result<uint64_t> ReadAndVerify(std::span<const uint64_t> chain, uint64_t hit);
  kv::Status PutFrom(std::span<const uint64_t> chain, uint64_t first);
  kv::MutableByteSpan Place(uint64_t at);

  kv::Client& client_;
  const kv::NamespaceId space_;
  const uint64_t block_bytes_;
  const uint64_t stride_;  // Block bytes in whole sectors.
  const uint64_t batch_;   // Blocks of one call; whole runs.
  kv::Bytes memory_;
  std::vector<kv::BlockId> ids_;     // Of the request in hand.
  std::vector<kv::BlockId> prompt_;  // Its prompt's.
  DriverCounts counts_;
};

}  // namespace cairn::tools
