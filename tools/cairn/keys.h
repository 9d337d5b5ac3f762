// Keys as people name them, turned into the chains that the store asks for.
#pragma once

#include <string>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/types/ids.h"

namespace CLI {
class App;
}

namespace cairn::tools {

struct KeyFlags {
  std::string key;
  bool hex = false;  // `key` is the key's bytes in hex digits.
  bool id = false;   // `key` is a block id as `cairn ls` prints it: ID, or RUN/ID.
};

// KEY, --hex and --id.
void AddKeyOptions(CLI::App& verb, KeyFlags& flags);

// The chain whose last block is meant: the block alone, or the leader of its run and the block.
// kInvalid says what a key looks like.
kv::Result<std::vector<kv::BlockId>> ParseKey(const KeyFlags& flags);

// "ID", or "RUN/ID" when the block does not lead its run: ParseKey reads it with --id.
std::string BlockName(kv::BlockId id, kv::RunId run);

// 32 hex digits.
kv::Result<kv::Id128> ParseId(std::string_view text);

}  // namespace cairn::tools
