// The steps in order; each one's failure names it.
#include "kvstore/daemon/self_test.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace cairn::kv {
namespace {

constexpr const char* kName = "cairnd.self-test";
constexpr uint32_t kSize = 300'001;  // Several shards, and a size that is no multiple of anything.

Status Failed(const char* step, const Status& why) {
  return Status(why.ok() ? Code::kCorrupt : why.code(),
                std::string("self-test: ").append(step).append(": ").append(
                    why.ok() ? "the answer is wrong" : why.ToString()));
}

Bytes Content() {
  Bytes bytes(kSize);
  uint32_t value = 12345;
  for (uint8_t& byte : bytes.span()) {
    value = value * 1'664'525 + 1'013'904'223;
    byte = static_cast<uint8_t>(value >> 24);
  }
  return bytes;
}

Task<Status> PutAndRead(BlockStore& store, NamespaceId space, BlockId id) {
  const Bytes content = Content();
  const std::vector<BlockId> chain = {id};
  ChainPut put{.space = space, .chain = chain};
  put.blocks.push_back({.id = id, .bytes = content.span()});
  put.ack = Ack::kDurable;
  const std::vector<Status> stored = co_await store.Put(std::move(put));
  if (stored.size() != 1 || !stored[0].ok()) co_return Failed("put", stored[0]);
  const Result<ChainHit> hit = co_await store.Lookup(space, chain, LeaseOrder());
  if (!hit.ok()) co_return Failed("lookup", hit.status());
  if (hit.value().blocks != 1 || hit.value().sizes[0] != kSize) {
    co_return Failed("lookup", Status());
  }
  Bytes room(kSize);
  std::vector<BlockRead> reads;
  reads.push_back({.id = id, .into = room.sectors()});
  const std::vector<BlockReadResult> got =
      co_await store.Get(space, chain, std::move(reads), kNever);
  if (!got[0].status.ok()) co_return Failed("get", got[0].status);
  const bool same = got[0].size == kSize &&
                    std::memcmp(room.span().data(), content.span().data(), kSize) == 0;
  if (!same) co_return Failed("verify", Status());
  Status deleted = co_await store.Delete(space, chain, 0);
  if (!deleted.ok()) co_return Failed("delete", deleted);
  const Result<ChainHit> after = co_await store.Lookup(space, chain, LeaseOrder());
  if (!after.ok()) co_return Failed("lookup after delete", after.status());
  if (after.value().blocks != 0) co_return Failed("lookup after delete", Status());
  co_return Status();
}

}  // namespace

Task<Status> SelfTest(BlockStore& store, StoreAdmin& admin, uint32_t targets) {
  NamespaceOptions options;
  options.name = kName;
  options.fingerprint = "cairnd";
  options.parity_shards = static_cast<uint8_t>(std::min<uint32_t>(2, targets - 1));
  options.data_shards = static_cast<uint8_t>(
      std::clamp<uint32_t>(targets - options.parity_shards, 1, 10));
  options.run_blocks = 1;
  options.ttl_seconds = 3600;
  // What a crash left behind in the middle of the last test.
  Status old = co_await admin.DeleteSpace(kName);
  if (!old.ok() && old.code() != Code::kNotFound) co_return Failed("clean up", old);
  const Result<NamespaceId> space = co_await store.Attach(options);
  if (!space.ok()) co_return Failed("create a namespace", space.status());
  const BlockId id{{0x6361'6972'6e64'0000, 1}};
  Status tested = co_await PutAndRead(store, space.value(), id);
  Status removed = co_await admin.DeleteSpace(kName);
  if (!tested.ok()) co_return tested;
  const bool gone = removed.ok() || removed.code() == Code::kNotFound;
  co_return gone ? Status() : Failed("delete the namespace", removed);
}

}  // namespace cairn::kv
