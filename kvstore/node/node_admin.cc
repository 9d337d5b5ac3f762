// Reads the targets' tables, and manifests where it must.
#include "kvstore/node/node_admin.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace cairn::kv {
namespace {

constexpr uint32_t kLimitMax = 10'000;
constexpr size_t kManifestsAtOnce = 64;

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<uint8_t>(byte);
    text.push_back(kDigits[value >> 4]);
    text.push_back(kDigits[value & 15]);
  }
  return text;
}

// Nothing when `text` is not hex.
std::optional<std::string> FromHex(std::string_view text) {
  std::string bytes;
  if (text.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t value = 0;
    const char* end = text.data() + i + 2;
    const auto [stopped, error] = std::from_chars(text.data() + i, end, value, 16);
    if (error != std::errc() || stopped != end) return std::nullopt;
    bytes.push_back(static_cast<char>(value));
  }
  return bytes;
}

template <typename Number>
bool TakeNumber(std::string_view& text, Number& number) {
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(stopped - text.data()));
  return true;
}

bool TakeDot(std::string_view& text) {
  if (text.empty() || text.front() != '.') return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Task<Result<StoreStats>> NodeAdmin::Stats() { co_return node_.stats(); }

Task<Result<std::vector<SpaceInfo>>> NodeAdmin::ListSpaces() {
  std::vector<SpaceInfo> spaces = node_.striped().Spaces();
  std::vector<SpaceInfo> in_memory = node_.window().Spaces();
  std::move(in_memory.begin(), in_memory.end(), std::back_inserter(spaces));
  co_return std::move(spaces);
}

Task<Result<NamespaceId>> NodeAdmin::CreateSpace(NamespaceOptions options) {
  const std::string& name = options.name;
  if (node_.home().spaces().FindName(name) != nullptr || IsInMemory(name)) {
    co_return Status(Code::kConflict, "namespace \"" + name + "\" exists already");
  }
  if (options.medium == Medium::kMemory) co_return node_.window().CreateSpace(std::move(options));
  co_return co_await node_.striped().CreateSpace(std::move(options));
}

Task<Status> NodeAdmin::DeleteSpace(std::string name) {
  if (IsInMemory(name)) co_return node_.window().DeleteSpace(name);
  co_return co_await node_.striped().DeleteSpace(std::move(name));
}

bool NodeAdmin::IsInMemory(const std::string& name) const {
  const std::vector<SpaceInfo> spaces = node_.window().Spaces();
  return std::any_of(spaces.begin(), spaces.end(),
                     [&](const SpaceInfo& space) { return space.options.name == name; });
}

Task<Result<std::vector<TargetInfo>>> NodeAdmin::ListTargets() {
  std::vector<TargetInfo> infos;
  for (const Node::Place& place : node_.places()) {
    TargetInfo& info = infos.emplace_back();
    info.place = static_cast<uint32_t>(infos.size() - 1);
    if (place.target == nullptr) {
      info.state = TargetInfo::State::kLost;
      info.reason = place.why_lost.ToString();
      continue;
    }
    info.id = place.target->id();
    info.label = place.target->label();
    const SegmentLogStats log = place.target->log().stats();
    info.capacity_bytes = log.capacity_bytes;
    info.free_bytes = log.free_bytes;
    info.live_bytes = log.live_bytes;
    info.shards = log.shards;
    info.reads = log.reads;
    info.bytes_read = log.bytes_read;
    info.bytes_appended = log.bytes_appended;
    info.bytes_moved = log.bytes_moved;
    info.corrupt_reads = log.corrupt_reads;
  }
  co_return infos;
}

// --- Blocks ---

std::string NodeAdmin::Encode(const Cursor& cursor) {
  std::string text = std::to_string(cursor.place).append(".");
  text.append(std::to_string(cursor.done)).append(".");
  return text.append(ToHex(cursor.after));
}

Result<NodeAdmin::Cursor> NodeAdmin::Decode(NamespaceId space, const std::string& text) {
  Cursor cursor;
  if (text.empty()) return cursor;
  std::string_view rest = text;
  if (TakeNumber(rest, cursor.place) && TakeDot(rest) && TakeNumber(rest, cursor.done) &&
      TakeDot(rest)) {
    const std::optional<std::string> after = FromHex(rest);
    const std::string prefix = SpaceManifestPrefix(space);
    const bool is_key =
        after && (after->empty() || (after->starts_with(prefix) &&
                                     after->size() == prefix.size() + 2 * sizeof(Id128)));
    if (is_key) {
      cursor.after = *after;
      return cursor;
    }
  }
  return Status(Code::kInvalid, "the cursor is not one that a listing of this namespace gave");
}

Task<Result<BlockPage>> NodeAdmin::ListBlocks(NamespaceId space, std::string text, uint32_t limit) {
  if (limit < 1 || limit > kLimitMax) {
    co_return Status(Code::kInvalid, "a page has 1 to 10,000 blocks");
  }
  const SpaceRegistry& spaces = node_.home().spaces();
  if (spaces.Find(space) == nullptr) co_return spaces.WhyNot(space);
  Result<Cursor> decoded = Decode(space, text);
  if (!decoded.ok()) co_return decoded.status();
  Cursor cursor = std::move(decoded).value();
  BlockPage page;
  while (cursor.place < node_.targets().size() && page.blocks.size() < limit) {
    KV_CO_RETURN_IF_ERROR(co_await ListTarget(space, cursor, limit, page));
  }
  if (cursor.place < node_.targets().size()) page.next = Encode(cursor);
  co_return std::move(page);
}

// Fills the page from one target, and moves the cursor: to the next target at the end of this one.
Task<Status> NodeAdmin::ListTarget(NamespaceId space, Cursor& cursor, uint32_t limit,
                                   BlockPage& page) {
  IndexReplica& index = node_.targets()[cursor.place]->index();
  // A stripe that was listed in part is read again: the piece begins just before it.
  std::string from = cursor.after;
  if (cursor.done > 0) from.back() = static_cast<char>(static_cast<uint8_t>(from.back()) - 1);
  const bool wraps = cursor.done > 0 && cursor.after.back() == 0;
  if (wraps) from.pop_back();
  const auto manifests = co_await index.ListManifests(space, from, kManifestsAtOnce);
  if (!manifests.ok()) co_return manifests.status();
  const std::string partial = cursor.done > 0 ? cursor.after : std::string();
  for (const auto& [key, manifest] : manifests.value().manifests) {
    if (!partial.empty() && key < partial) continue;
    if (page.blocks.size() >= limit) co_return Status();
    const uint32_t begin = key == partial ? cursor.done : 0;
    cursor.after = key;
    cursor.done = 0;
    if (IsRepeated(cursor.place, manifest.stripe)) continue;
    const uint32_t done = AddBlocks(manifest, begin, limit, page);
    if (done < manifest.blocks.size()) {
      cursor.done = done;
      co_return Status();
    }
  }
  if (!manifests.value().next.empty()) {
    cursor.after = std::max(cursor.after, manifests.value().next);
    co_return Status();
  }
  cursor = {.place = cursor.place + 1, .after = {}, .done = 0};
  co_return Status();
}

bool NodeAdmin::IsRepeated(size_t place, StripeId stripe) const {
  const auto begin = node_.targets().begin();
  return std::any_of(begin, begin + static_cast<ptrdiff_t>(place),
                     [&](const auto& target) { return target->MayHaveFiled(stripe); });
}

uint32_t NodeAdmin::AddBlocks(const Manifest& manifest, uint32_t done, uint32_t limit,
                              BlockPage& page) {
  const std::optional<StripeState> state = node_.home().index().StateOf(manifest.stripe);
  const auto count = static_cast<uint32_t>(manifest.blocks.size());
  if (!state || node_.UnixNow() >= state->expires_at) return count;
  for (; done < count && page.blocks.size() < limit; ++done) {
    page.blocks.push_back(InfoOf(manifest, done));
  }
  return done;
}

BlockInfo NodeAdmin::InfoOf(const Manifest& manifest, size_t block) const {
  BlockInfo info;
  info.id = manifest.blocks[block].id;
  info.size = manifest.blocks[block].size;
  info.stripe = manifest.stripe;
  info.run = manifest.run;
  const std::optional<StripeState> state = node_.home().index().StateOf(manifest.stripe);
  if (!state) return info;
  info.expires_at = state->expires_at;
  info.last_access = {int64_t{state->last_access} * 1000};
  info.keep_until = {int64_t{state->keep_until} * 1000};
  return info;
}

uint32_t NodeAdmin::PlaceOf(TargetId target) const {
  const auto& places = node_.places();
  const auto found = std::find_if(places.begin(), places.end(), [&](const Node::Place& place) {
    return place.target != nullptr && place.target->id() == target;
  });
  return found == places.end() ? UINT32_MAX : static_cast<uint32_t>(found - places.begin());
}

Task<Result<BlockDetails>> NodeAdmin::Inspect(NamespaceId space, std::vector<BlockId> chain,
                                              uint32_t at, bool verify) {
  const SpaceRegistry& spaces = node_.home().spaces();
  const SpaceRecord* record = spaces.Find(space);
  if (record == nullptr) co_return spaces.WhyNot(space);
  if (at >= chain.size()) co_return Status(Code::kInvalid, "the chain has no such block");
  const RunKey key{space, RunId{chain[at - at % record->run_blocks]}};
  const std::vector<BlockId> wanted{chain[at]};
  auto run = co_await node_.striped().index().Load(key, wanted);
  if (!run.ok()) co_return run.status();
  // Also what cannot be restored just now is shown.
  const auto known = run.value()->Find(wanted[0]);
  if (known.empty()) co_return Status(Code::kNotFound, "no such block is stored");
  const KnownRun::Place place = known.front();
  BlockDetails details;
  details.manifest = place.stripe->manifest;
  details.block = InfoOf(details.manifest, place.block);
  details.block.expires_at = place.stripe->expires_at;  // Its home is perhaps another node.
  const std::vector<Node::Place>& places = node_.places();
  for (uint32_t i = 0; i < places.size(); ++i) {
    const LocalTarget* target = places[i].target;
    const bool has = target != nullptr && target->MayHaveFiled(details.block.stripe);
    if (has) details.index_places.push_back(i);
  }
  details.shards = co_await AskShards(details.manifest, verify);
  co_return std::move(details);
}

Task<std::vector<ShardInfo>> NodeAdmin::AskShards(const Manifest& manifest, bool verify) const {
  const TargetSet& targets = node_.all_targets();
  const std::vector<Status> said = co_await targets.AskShards(manifest);
  std::vector<ShardInfo> shards;
  for (uint8_t i = 0; i < manifest.shard_count(); ++i) {
    ShardInfo& shard = shards.emplace_back();
    shard.index = {i};
    shard.target = manifest.targets[i];
    shard.place = PlaceOf(shard.target);
    shard.present = said[i].ok();
    if (!said[i].ok() && said[i].code() != Code::kNotFound) shard.verified = said[i];
    TargetPort* port = targets.Find(shard.target);
    if (!verify || !shard.present || port == nullptr) continue;
    Bytes payload(manifest.shard_size);
    const MutableByteSpan into = payload.span();
    Status outcome = co_await port->ReadVerified(manifest.stripe, shard.index, into);
    shards[i].verified = std::move(outcome);
  }
  co_return std::move(shards);
}

Task<Status> NodeAdmin::StartScrub(uint64_t bytes_per_second) {
  co_return node_.scrubber().Start(bytes_per_second);
}
Task<Status> NodeAdmin::StopScrub() {
  co_await node_.scrubber().Stop();
  co_return Status();
}
Task<Result<MaintenanceStatus>> NodeAdmin::ScrubStatus() { co_return node_.scrubber().status(); }
Task<Status> NodeAdmin::StartRepair(uint64_t bytes_per_second) {
  co_return node_.repairer().Start(bytes_per_second);
}
Task<Status> NodeAdmin::StopRepair() {
  co_await node_.repairer().Stop();
  co_return Status();
}
Task<Result<MaintenanceStatus>> NodeAdmin::RepairStatus() { co_return node_.repairer().status(); }

}  // namespace cairn::kv
