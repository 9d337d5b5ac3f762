// Chains of blocks that tests put, look up, get, delete and evict through any node of a world.
#pragma once

#include <set>
#include <vector>

#include "tests/support/random_chain.h"
#include "tests/unit/kvstore/home/home_world.h"

namespace cairn::kv {

inline Chain MakeChain(World& world, size_t blocks, uint32_t size = 5000) {
  return RandomChain(world.random(), blocks, size);
}

// A chain of one run, whose home is node `n`.
inline Chain ChainAt(World& world, uint32_t n) {
  while (true) {
    Chain chain = MakeChain(world, 4);
    if (world.HomeOf(RunId{chain.ids[0]}) == NodeId{n}) return chain;
  }
}

inline ChainPut PutOf(World& world, const Chain& chain) {
  ChainPut put{.space = world.space, .chain = chain.ids};
  for (size_t i = 0; i < chain.ids.size(); ++i) {
    put.blocks.push_back({chain.ids[i], chain.bytes[i].span()});
  }
  return put;
}

inline std::vector<Status> Put(World& world, uint32_t n, const Chain& chain) {
  return world.Await(world.node(n).store->Put(PutOf(world, chain)));
}

inline ChainHit Lookup(World& world, uint32_t n, const Chain& chain, LeaseOrder order = {}) {
  return world.Await(world.node(n).store->Lookup(world.space, chain.ids, order)).value();
}

// kCorrupt when the bytes are not those of the block.
inline Status Get(World& world, uint32_t n, const Chain& chain, size_t block) {
  Bytes room(AlignUp(chain.bytes[block].size(), kSectorSize));
  const std::vector<BlockRead> reads{{chain.ids[block], room.span()}};
  const auto results = world.Await(world.node(n).store->Get(world.space, chain.ids, reads, kNever));
  if (!results[0].status.ok()) return results[0].status;
  const ByteSpan wanted = chain.bytes[block].span();
  const bool same = results[0].size == wanted.size() &&
                    std::equal(wanted.begin(), wanted.end(), room.data());
  return same ? Status() : Status(Code::kCorrupt, "wrong bytes");
}

// Every stripe that is filed of the chain's first run.
inline std::set<StripeId> StripesOf(World& world, const Chain& chain) {
  std::set<StripeId> stripes;
  for (const FakeTarget* target : world.all_targets()) {
    for (const auto& [id, filed] : target->filed) {
      if (filed.manifest.run == RunId{chain.ids[0]}) stripes.insert(id);
    }
  }
  return stripes;
}

// That is filed and has this block.
inline StripeId StripeOf(World& world, const BlockId& block) {
  for (const FakeTarget* target : world.all_targets()) {
    for (const auto& [id, filed] : target->filed) {
      for (const ManifestBlock& one : filed.manifest.blocks) {
        if (one.id == block) return id;
      }
    }
  }
  return {};
}

// What the reclaimer of node `n` does with the chain's stripe.
inline Status Evict(World& world, uint32_t n, const Chain& chain) {
  const std::set<StripeId> stripes = StripesOf(world, chain);
  KV_CHECK(stripes.size() == 1);
  const StripeName name{world.space, RunId{chain.ids[0]}, *stripes.begin()};
  return world.Await(world.node(n).index->Remove(name, MissReason::kEvicted));
}

inline Status Delete(World& world, uint32_t n, const Chain& chain) {
  return world.Await(world.node(n).store->Delete(world.space, chain.ids, 0));
}

}  // namespace cairn::kv
