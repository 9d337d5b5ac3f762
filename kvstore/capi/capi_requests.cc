// The requests of cairn.h: each becomes a call of kv::Client whose callback fills the answer in.
#include <algorithm>
#include <vector>

#include "kvstore/capi/handles.h"
#include "kvstore/client/client.h"
#include "kvstore/os/poller.h"

namespace cairn::kv {
namespace {

bool IsChain(const cairn_chain& chain) { return chain.ids != nullptr || chain.count == 0; }

NamespaceId SpaceOf(const cairn_chain& chain) { return NamespaceId{FromC(chain.space)}; }

LeaseOrder LeaseOf(uint32_t lease_ms) { return {.session = {}, .duration = Millis(lease_ms)}; }

uint32_t MillisOf(Nanos span) {
  return static_cast<uint32_t>(std::max<int64_t>(0, span.value) / 1'000'000);
}

std::vector<LeaseId> LeasesOf(const uint64_t* leases, size_t count) {
  std::vector<LeaseId> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(LeaseId{leases[i]});
  return ids;
}

// Writes the codes out, and tells the first failure that is no ordinary miss.
Status Report(const std::vector<Status>& outcomes, cairn_code* codes, size_t count) {
  Status worst;
  for (size_t i = 0; i < std::min(outcomes.size(), count); ++i) {
    if (codes != nullptr) codes[i] = CodeOf(outcomes[i]);
    if (worst.ok() && outcomes[i].code() != Code::kNotFound) worst = outcomes[i];
  }
  return worst;
}

BlockRead ReadOf(const cairn_chain& chain, const cairn_read& read) {
  BlockRead block{.id = BlockId{FromC(chain.ids[read.chain_index])}};
  if (read.segment_count == 0) {
    block.into = {static_cast<uint8_t*>(read.into), read.into_size};
  }
  for (size_t i = 0; i < read.segment_count; ++i) {
    const cairn_segment& segment = read.segments[i];
    block.scatter.emplace_back(static_cast<uint8_t*>(segment.data), segment.size);
  }
  return block;
}

BlockWrite WriteOf(const cairn_id& id, const cairn_write& write) {
  BlockWrite block{.id = BlockId{FromC(id)}};
  if (write.segment_count == 0) {
    block.bytes = {static_cast<const uint8_t*>(write.bytes), write.size};
  }
  for (size_t i = 0; i < write.segment_count; ++i) {
    const cairn_segment& segment = write.segments[i];
    block.gather.emplace_back(static_cast<const uint8_t*>(segment.data), segment.size);
  }
  return block;
}

}  // namespace

// C names are the same in every namespace; their visibility must be said again here.
#pragma GCC visibility push(default)
extern "C" {

cairn_code cairn_submit_lookup(cairn_store* store, cairn_lookup* lookup, cairn_queue* queue,
                               uint64_t tag) {
  if (store == nullptr || lookup == nullptr || queue == nullptr) return CAIRN_INVALID;
  if (lookup->struct_size < sizeof(*lookup) || !IsChain(lookup->chain)) return CAIRN_INVALID;
  const auto done = [lookup, queue, tag](Result<ChainHit> found) {
    if (found.ok()) {
      const ChainHit& hit = found.value();
      lookup->blocks = hit.blocks;
      lookup->miss = static_cast<uint32_t>(hit.miss);
      lookup->load_estimate_ns = static_cast<uint64_t>(hit.load_estimate.value);
      lookup->lease = hit.lease.value;
      lookup->lease_granted_ms = MillisOf(hit.lease_for);
      if (lookup->sizes != nullptr) std::copy(hit.sizes.begin(), hit.sizes.end(), lookup->sizes);
    }
    queue->Add(tag, found.status());
  };
  store->client->client().Lookup(SpaceOf(lookup->chain), IdsOf(lookup->chain),
                                 LeaseOf(lookup->lease_ms), done);
  return CAIRN_OK;
}

cairn_code cairn_submit_lookup_each(cairn_store* store, cairn_lookup_each* lookup,
                                    cairn_queue* queue, uint64_t tag) {
  if (store == nullptr || lookup == nullptr || queue == nullptr) return CAIRN_INVALID;
  if (lookup->struct_size < sizeof(*lookup) || !IsChain(lookup->chain)) return CAIRN_INVALID;
  if (lookup->sizes == nullptr || lookup->first > lookup->chain.count) return CAIRN_INVALID;
  const auto done = [lookup, queue, tag](Result<EachHit> found) {
    if (found.ok()) {
      const EachHit& hit = found.value();
      for (size_t i = 0; i < hit.blocks.size(); ++i) lookup->sizes[i] = hit.blocks[i].size;
      lookup->load_estimate_ns = static_cast<uint64_t>(hit.load_estimate.value);
      lookup->lease = hit.lease.value;
      lookup->lease_granted_ms = MillisOf(hit.lease_for);
    }
    queue->Add(tag, found.status());
  };
  store->client->client().LookupEach(SpaceOf(lookup->chain), IdsOf(lookup->chain), lookup->first,
                                     LeaseOf(lookup->lease_ms), done);
  return CAIRN_OK;
}

cairn_code cairn_submit_get(cairn_store* store, const cairn_chain* chain, cairn_read* reads,
                            size_t count, uint32_t deadline_ms, cairn_queue* queue, uint64_t tag) {
  if (store == nullptr || chain == nullptr || queue == nullptr) return CAIRN_INVALID;
  if (!IsChain(*chain) || (reads == nullptr && count > 0)) return CAIRN_INVALID;
  std::vector<BlockRead> blocks;
  for (size_t i = 0; i < count; ++i) {
    const cairn_read& read = reads[i];
    if (read.chain_index >= chain->count) return CAIRN_INVALID;
    if (read.segment_count > 0 ? read.segments == nullptr : read.into == nullptr) {
      return CAIRN_INVALID;
    }
    blocks.push_back(ReadOf(*chain, read));
  }
  const auto done = [reads, queue, tag](std::vector<BlockReadResult> results) {
    std::vector<Status> outcomes;
    for (size_t i = 0; i < results.size(); ++i) {
      reads[i].code = CodeOf(results[i].status);
      reads[i].size = results[i].size;
      reads[i].checksum = results[i].checksum;
      outcomes.push_back(std::move(results[i].status));
    }
    queue->Add(tag, Report(outcomes, nullptr, outcomes.size()));
  };
  const uint32_t limit_ms = deadline_ms == 0 ? store->call_timeout_ms : deadline_ms;
  store->client->client().Get(SpaceOf(*chain), IdsOf(*chain), std::move(blocks),
                              Poller::Now() + Millis(limit_ms), done);
  return CAIRN_OK;
}

cairn_code cairn_submit_put(cairn_store* store, const cairn_chain* chain, uint32_t first,
                            cairn_write* writes, size_t count, const cairn_put_options* given,
                            cairn_queue* queue, uint64_t tag) {
  if (store == nullptr || chain == nullptr || queue == nullptr) return CAIRN_INVALID;
  if (!IsChain(*chain) || (writes == nullptr && count > 0)) return CAIRN_INVALID;
  if (first > chain->count || count > chain->count - first) return CAIRN_INVALID;
  ChainPut put{.space = SpaceOf(*chain), .chain = IdsOf(*chain), .first = first};
  if (given != nullptr) {
    cairn_put_options known;
    if (!CopyKnown(given, known)) return CAIRN_INVALID;
    put.ack = known.durable != 0 ? Ack::kDurable : Ack::kCached;
    if (known.ttl_seconds != 0) put.ttl_seconds = known.ttl_seconds;
    put.keep_until = {static_cast<int64_t>(known.keep_until_ms)};
  }
  for (size_t i = 0; i < count; ++i) {
    const cairn_write& write = writes[i];
    if (write.segment_count > 0 ? write.segments == nullptr : write.bytes == nullptr) {
      return CAIRN_INVALID;
    }
    put.blocks.push_back(WriteOf(chain->ids[first + i], write));
  }
  const auto done = [writes, count, queue, tag](std::vector<Status> outcomes) {
    std::vector<cairn_code> codes(count, CAIRN_OK);
    const Status worst = Report(outcomes, codes.data(), count);
    for (size_t i = 0; i < count; ++i) writes[i].code = codes[i];
    queue->Add(tag, worst);
  };
  store->client->client().Put(std::move(put), done);
  return CAIRN_OK;
}

cairn_code cairn_submit_touch(cairn_store* store, const cairn_chain* chain, uint32_t first,
                              uint64_t keep_until_ms, cairn_code* codes, cairn_queue* queue,
                              uint64_t tag) {
  if (store == nullptr || chain == nullptr || queue == nullptr) return CAIRN_INVALID;
  if (!IsChain(*chain) || first > chain->count) return CAIRN_INVALID;
  const auto done = [codes, count = chain->count - first, queue, tag](std::vector<Status> all) {
    queue->Add(tag, Report(all, codes, count));
  };
  store->client->client().Touch(SpaceOf(*chain), IdsOf(*chain), first,
                                {static_cast<int64_t>(keep_until_ms)}, done);
  return CAIRN_OK;
}

cairn_code cairn_submit_delete(cairn_store* store, const cairn_chain* chain, uint32_t first,
                               cairn_queue* queue, uint64_t tag) {
  if (store == nullptr || chain == nullptr || queue == nullptr) return CAIRN_INVALID;
  if (!IsChain(*chain) || first > chain->count) return CAIRN_INVALID;
  store->client->client().Delete(SpaceOf(*chain), IdsOf(*chain), first,
                                 [queue, tag](Status outcome) { queue->Add(tag, outcome); });
  return CAIRN_OK;
}

cairn_code cairn_submit_renew(cairn_store* store, const uint64_t* leases, size_t count,
                              uint32_t lease_ms, cairn_code* codes, cairn_queue* queue,
                              uint64_t tag) {
  if (store == nullptr || queue == nullptr || (leases == nullptr && count > 0)) {
    return CAIRN_INVALID;
  }
  const auto done = [codes, count, queue, tag](std::vector<Status> all) {
    queue->Add(tag, Report(all, codes, count));
  };
  store->client->client().Renew(LeasesOf(leases, count), LeaseOf(lease_ms),
                                done);
  return CAIRN_OK;
}

cairn_code cairn_submit_release(cairn_store* store, const uint64_t* leases, size_t count,
                                cairn_queue* queue, uint64_t tag) {
  if (store == nullptr || queue == nullptr || (leases == nullptr && count > 0)) {
    return CAIRN_INVALID;
  }
  store->client->client().Release(LeasesOf(leases, count), SessionId(),
                                  [queue, tag](Status outcome) { queue->Add(tag, outcome); });
  return CAIRN_OK;
}

}  // extern "C"
#pragma GCC visibility pop

}  // namespace cairn::kv
