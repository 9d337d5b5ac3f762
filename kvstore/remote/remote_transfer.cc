// Gets and puts: which bytes go through shared memory, which through a socket, in which request.
#include <algorithm>
#include <string>
#include <utility>

#include "kvstore/base/checksum.h"
#include "kvstore/remote/remote_core.h"

namespace cairn::kv {

using wire::Verb;

namespace {

// Payload of one get: small enough that several lanes share the work.
constexpr uint64_t kGetPayloadMax = 4 * kMiB;
// Payload of one put: large enough that blocks meant to share a stripe come together.
constexpr uint64_t kPutPayloadMax = 64 * kMiB;

std::vector<MutableByteSpan> PlacesOf(const BlockRead& read) {
  if (!read.scatter.empty()) return read.scatter;
  return {read.into};
}

std::vector<ByteSpan> PartsOf(const BlockWrite& block) {
  if (!block.gather.empty()) return block.gather;
  return {block.bytes};
}

template <typename Spans>
uint64_t SizeOf(const Spans& spans) {
  uint64_t size = 0;
  for (const auto& span : spans) size += span.size();
  return size;
}

template <typename Spans>
uint64_t ChecksumOf(const Spans& spans, uint64_t size) {
  if (spans.size() == 1) return Checksum(ByteSpan(spans[0]).first(size));
  ChecksumStream stream;
  for (const auto& span : spans) {
    const uint64_t step = std::min<uint64_t>(size, span.size());
    stream.Add(ByteSpan(span).first(step));
    size -= step;
  }
  return stream.Digest();
}

bool IsWholeSectors(MutableByteSpan place) {
  return reinterpret_cast<uintptr_t>(place.data()) % kSectorSize == 0 &&
         place.size() % kSectorSize == 0 && !place.empty();
}

}  // namespace

struct RemoteStore::Core::Group {
  bool as_payload = false;
  uint64_t bytes = 0;
  size_t segment_count = 0;
  size_t chain_end = 0;         // The chain is sent up to here.
  std::vector<size_t> members;  // Of the reads or the blocks; of blocks, neighbours.
  std::vector<std::vector<wire::Segment>> segments;  // Of each member; empty as payload.

  // Whether one more of this kind and size fits into the same request.
  bool Takes(bool payload, uint64_t size, uint64_t payload_max, size_t segments_more) const {
    return as_payload == payload && members.size() < wire::kBlocksMax &&
           segment_count + segments_more <= wire::kSegmentsMax &&
           (!payload || bytes + size <= payload_max);
  }
  void Add(size_t member, uint64_t size, std::vector<wire::Segment> where) {
    members.push_back(member);
    bytes += size;
    segment_count += where.size();
    segments.push_back(std::move(where));
  }
};

// --- Gets ---------------------------------------------------------------------------------------

Task<std::vector<BlockReadResult>> RemoteStore::Core::Get(NamespaceId space,
                                                          std::vector<BlockId> chain,
                                                          std::vector<BlockRead> reads,
                                                          Instant deadline) {
  const Calling calling(*this);
  std::vector<BlockReadResult> results(reads.size());
  const Result<SessionPtr> current = session();
  if (!current.ok()) {
    for (BlockReadResult& result : results) result.status = current.status();
    co_return results;
  }
  const SessionPtr kept = current.value();
  if (deadline == kNever) deadline = CallDeadline();
  std::vector<Task<void>> gets;
  for (Group& group : GroupReads(*kept, chain, reads, results)) {
    gets.push_back(GetGroup(kept, space, chain, reads, std::move(group), deadline, results));
  }
  for (Task<void>& get : gets) co_await get;
  co_return results;
}

std::vector<wire::Segment> RemoteStore::Core::LandingOf(const RemoteSession& session,
                                                        const BlockRead& read) const {
  const std::vector<MutableByteSpan> places = PlacesOf(read);
  if (!session.shares_memory()) return {};
  // Only whole sectors can be taken from a late server again: see ClientRegions::Revoke.
  if (!std::all_of(places.begin(), places.end(), IsWholeSectors)) return {};
  std::optional<std::vector<wire::Segment>> segments = regions_.SegmentsOf(places);
  if (!segments.has_value() || segments->size() > kScatterMax) return {};
  return std::move(*segments);
}

std::vector<RemoteStore::Core::Group> RemoteStore::Core::GroupReads(
    const RemoteSession& session, const std::vector<BlockId>& chain,
    const std::vector<BlockRead>& reads, std::vector<BlockReadResult>& results) const {
  std::vector<Group> groups;
  size_t cursor = 0;  // Reads mostly come in chain order.
  for (size_t i = 0; i < reads.size(); ++i) {
    const auto begin = chain.begin();
    auto at = std::find(begin + static_cast<ptrdiff_t>(cursor), chain.end(), reads[i].id);
    if (at == chain.end()) at = std::find(begin, chain.end(), reads[i].id);
    const uint64_t size = SizeOf(PlacesOf(reads[i]));
    if (at == chain.end() || reads[i].scatter.size() > kScatterMax || size == 0 ||
        size > UINT32_MAX) {
      results[i].status = Status(Code::kInvalid,
                                 at == chain.end() ? "the block is not in the chain"
                                                   : "no memory for it, or in too many segments");
      continue;
    }
    cursor = static_cast<size_t>(at - begin);
    std::vector<wire::Segment> landing = LandingOf(session, reads[i]);
    const bool as_payload = landing.empty();
    const uint64_t capacity = std::min(size, kBlockSizeMax);
    const auto fits = [&](const Group& group) {
      return group.Takes(as_payload, capacity, kGetPayloadMax, landing.size());
    };
    // The latest of its kind, if there is still room.
    const auto latest = std::find_if(groups.rbegin(), groups.rend(), fits);
    Group& group = latest == groups.rend() ? groups.emplace_back() : *latest;
    group.as_payload = as_payload;
    group.chain_end = std::max(group.chain_end, cursor + 1);
    group.Add(i, as_payload ? AlignUp(capacity, kSectorSize) : size, std::move(landing));
  }
  return groups;
}

Task<void> RemoteStore::Core::GetGroup(SessionPtr session, NamespaceId space,
                                       const std::vector<BlockId>& chain,
                                       const std::vector<BlockRead>& reads, Group group,
                                       Instant deadline, std::vector<BlockReadResult>& results) {
  wire::GetRequest request{.space = space, .as_payload = group.as_payload};
  request.chain.assign(chain.begin(), chain.begin() + static_cast<ptrdiff_t>(group.chain_end));
  std::vector<BlockRead> members;
  for (size_t i = 0; i < group.members.size(); ++i) {
    const BlockRead& read = reads[group.members[i]];
    members.push_back(read);
    uint64_t size = SizeOf(PlacesOf(read));
    if (group.as_payload) size = std::min(size, kBlockSizeMax);
    request.reads.push_back({.id = read.id,
                             .capacity = static_cast<uint32_t>(size),
                             .segments = group.segments[i]});
  }
  const auto fail = [&](const Status& why) {
    for (const size_t member : group.members) results[member].status = why;
  };
  Result<std::vector<uint8_t>> body = wire::Encode(request);
  if (!body.ok()) {
    fail(body.status());
    co_return;
  }
  RemoteSession::Order order{.verb = Verb::kGet,
                             .body = std::move(body).value(),
                             .on_data_lane = group.as_payload,
                             .credit_bytes = group.as_payload ? group.bytes : 0,
                             .deadline = deadline,
                             .reads = group.as_payload ? &members : nullptr,
                             .lands_in_regions = !group.as_payload};
  const RemoteSession::Answer answer = co_await session->Call(std::move(order));
  if (!answer.status.ok()) {
    if (!group.as_payload && answer.unknown) {
      for (const BlockRead& read : members) {
        for (const MutableByteSpan place : PlacesOf(read)) regions_.Revoke(place);
      }
    }
    fail(answer.status);
    co_return;
  }
  const auto parsed = wire::ParseAnswer<wire::GetAnswer>(answer.body);
  const bool fits = parsed.has_value() &&
                    (!parsed->ok() || parsed->value().blocks.size() == group.members.size());
  if (!fits) {
    session->Break("the server sent a malformed answer");
    fail(Status(Code::kUnavailable, session->why_broken()));
  } else if (!parsed->ok()) {
    fail(parsed->status());
  } else {
    TakeResults(reads, group, parsed->value(), results);
  }
}

void RemoteStore::Core::TakeResults(const std::vector<BlockRead>& reads, const Group& group,
                                    const wire::GetAnswer& answer,
                                    std::vector<BlockReadResult>& results) {
  for (size_t i = 0; i < group.members.size(); ++i) {
    const wire::GetAnswer::Block& block = answer.blocks[i];
    BlockReadResult& result = results[group.members[i]];
    result.status = block.status;
    if (!block.status.ok()) continue;
    result.size = block.size;
    result.checksum = block.checksum;
    if (!group.as_payload) {
      stats.shared_bytes_read += block.size;
      continue;
    }
    stats.inline_bytes_read += block.size;
    if (ChecksumOf(PlacesOf(reads[group.members[i]]), block.size) == block.checksum) continue;
    ++stats.corrupt_blocks;
    result = {};
    result.status = Status(Code::kCorrupt, "the block was damaged on its way");
  }
}

// --- Puts ---------------------------------------------------------------------------------------

Task<std::vector<Status>> RemoteStore::Core::Put(ChainPut put) {
  const Calling calling(*this);
  std::vector<Status> outcomes(put.blocks.size());
  const Result<SessionPtr> current = session();
  Status refused = current.status();
  if (put.chain.size() < put.blocks.size() || put.first > put.chain.size() - put.blocks.size()) {
    refused = Status(Code::kInvalid, "the chain does not reach to the last block");
  }
  for (const BlockWrite& block : put.blocks) {
    const uint64_t size = SizeOf(PartsOf(block));
    if (size == 0 || size > kBlockSizeMax || block.gather.size() > kScatterMax) {
      refused = Status(Code::kInvalid, "a block has 1 byte to 64 MiB, in at most 2,048 segments");
    }
  }
  if (!refused.ok()) co_return std::vector<Status>(put.blocks.size(), refused);
  const SessionPtr kept = current.value();
  std::vector<Task<void>> puts;
  for (Group& group : GroupWrites(*kept, put)) {
    puts.push_back(PutGroup(kept, put, std::move(group), outcomes));
  }
  for (Task<void>& one : puts) co_await one;
  co_return outcomes;
}

std::vector<RemoteStore::Core::Group> RemoteStore::Core::GroupWrites(
    const RemoteSession& session, const ChainPut& put) const {
  const uint64_t payload_max = std::min(kPutPayloadMax, session.limits().session_bytes_max);
  std::vector<Group> groups;
  for (size_t i = 0; i < put.blocks.size(); ++i) {
    const std::vector<ByteSpan> parts = PartsOf(put.blocks[i]);
    const uint64_t size = SizeOf(parts);
    std::optional<std::vector<wire::Segment>> segments;
    if (session.shares_memory()) segments = regions_.SegmentsOf(parts);
    if (segments.has_value() && segments->size() > kScatterMax) segments.reset();
    const bool as_payload = !segments.has_value();
    const size_t more = as_payload ? 0 : segments->size();
    const bool fits =
        !groups.empty() && groups.back().Takes(as_payload, size, payload_max, more);
    Group& group = fits ? groups.back() : groups.emplace_back();
    group.as_payload = as_payload;
    group.chain_end = put.first + i + 1;
    group.Add(i, size, as_payload ? std::vector<wire::Segment>() : std::move(*segments));
  }
  return groups;
}

Task<void> RemoteStore::Core::PutGroup(SessionPtr session, const ChainPut& put, Group group,
                                       std::vector<Status>& outcomes) {
  wire::PutRequest request{.space = put.space,
                           .first = put.first + static_cast<uint32_t>(group.members[0]),
                           .ack = put.ack,
                           .ttl_seconds = put.ttl_seconds,
                           .retention = put.retention,
                           .keep_until = put.keep_until,
                           .as_payload = group.as_payload};
  request.chain.assign(put.chain.begin(),
                       put.chain.begin() + static_cast<ptrdiff_t>(group.chain_end));
  std::vector<ByteSpan> payload;
  for (size_t i = 0; i < group.members.size(); ++i) {
    const BlockWrite& block = put.blocks[group.members[i]];
    const std::vector<ByteSpan> parts = PartsOf(block);
    const uint64_t size = SizeOf(parts);
    request.blocks.push_back({.id = block.id,
                              .size = static_cast<uint32_t>(size),
                              .checksum = block.checksum ? *block.checksum
                                                         : ChecksumOf(parts, size),
                              .segments = group.segments[i]});
    if (group.as_payload) payload.insert(payload.end(), parts.begin(), parts.end());
  }
  Result<std::vector<uint8_t>> body = wire::Encode(request);
  Result<std::vector<Status>> answer = Status(Code::kInvalid);
  if (body.ok()) {
    RemoteSession::Order order{.verb = Verb::kPut,
                               .body = std::move(body).value(),
                               .on_data_lane = group.as_payload,
                               .payload = std::move(payload),
                               .credit_bytes = group.as_payload ? group.bytes : 0,
                               .deadline = CallDeadline()};
    answer = co_await session->Ask<std::vector<Status>>(std::move(order));
  } else {
    answer = body.status();
  }
  for (size_t i = 0; i < group.members.size(); ++i) {
    Status& outcome = outcomes[group.members[i]];
    if (!answer.ok()) {
      outcome = answer.status();
    } else if (answer.value().size() == group.members.size()) {
      outcome = answer.value()[i];
    } else {
      outcome = Status(Code::kUnavailable, "the answer does not fit");
    }
  }
}

}  // namespace cairn::kv
