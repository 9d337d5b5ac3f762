// Maps chains of KV blocks onto the block store's lookups, gets and puts.
#include "engine/transfer/prefix_store.h"

#include <algorithm>
#include <utility>

namespace cairn::engine {

std::string LayoutFingerprint(const std::string& model_sha256, const PageLayout& layout) {
  return "cairn-engine 1\nmodel sha256:" + model_sha256 + "\nkv " + layout.Describe();
}

BlockStorePrefixStore::BlockStorePrefixStore(kv::Client& client, kv::NamespaceId space,
                                             KvPool& pool)
    : client_(client), space_(space), pool_(pool) {}

void BlockStorePrefixStore::Lookup(std::vector<kv::BlockId> chain,
                                   std::function<void(PrefixHit)> done) {
  const uint64_t block_bytes = pool_.layout().block_bytes();
  client_.Lookup(space_, std::move(chain),
                 [done = std::move(done), block_bytes](const kv::Result<kv::ChainHit>& hit) {
                   if (!hit.ok()) return done({});
                   // A block of another size is not ours, whatever its key says.
                   const std::vector<uint32_t>& sizes = hit.value().sizes;
                   const auto odd = std::find_if(sizes.begin(), sizes.end(), [&](uint32_t size) {
                     return size != block_bytes;
                   });
                   done({static_cast<uint32_t>(odd - sizes.begin()), hit.value().load_estimate});
                 });
}

void BlockStorePrefixStore::Load(std::vector<kv::BlockId> chain, std::vector<BlockIndex> into,
                                 kv::Instant deadline, std::function<void(uint32_t)> done) {
  KV_CHECK(into.size() <= chain.size());
  std::vector<kv::BlockRead> reads;
  for (size_t i = 0; i < into.size(); ++i) reads.push_back({chain[i], pool_.bytes(into[i])});
  const uint64_t block_bytes = pool_.layout().block_bytes();
  client_.Get(space_, std::move(chain), std::move(reads), deadline,
              [done = std::move(done), block_bytes](
                  const std::vector<kv::BlockReadResult>& results) {
                const auto bad = std::find_if(
                    results.begin(), results.end(), [&](const kv::BlockReadResult& result) {
                      return !result.status.ok() || result.size != block_bytes;
                    });
                done(static_cast<uint32_t>(bad - results.begin()));
              });
}

void BlockStorePrefixStore::Save(std::vector<kv::BlockId> chain, uint32_t first,
                                 std::vector<BlockIndex> blocks,
                                 std::function<void(uint32_t)> done) {
  KV_CHECK(first + blocks.size() <= chain.size());
  kv::ChainPut put;
  put.space = space_;
  put.first = first;
  for (size_t i = 0; i < blocks.size(); ++i) {
    put.blocks.push_back({chain[first + i], std::as_const(pool_).bytes(blocks[i])});
  }
  chain.resize(first + blocks.size());
  put.chain = std::move(chain);
  client_.Put(std::move(put), [done = std::move(done)](const std::vector<kv::Status>& statuses) {
    const auto ok = [](const kv::Status& status) { return status.ok(); };
    done(static_cast<uint32_t>(std::count_if(statuses.begin(), statuses.end(), ok)));
  });
}

}  // namespace cairn::engine
