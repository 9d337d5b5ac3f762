// Each client has its own draws, so that what one does moves no other.
#include "tests/sim/cluster_work.h"

#include <algorithm>
#include <utility>

namespace cairn::kv {
namespace {

constexpr Nanos kPause = Millis(1'500);      // Between two operations of a client, on average.
constexpr Nanos kPatience = Seconds(5);     // Of a get.
constexpr Nanos kPatiencePut = Seconds(60);
constexpr uint32_t kTtlSeconds = 86'400;
constexpr uint32_t kShortTtlSeconds = 20;

std::string ResultOf(const Status& status) {
  if (status.ok()) return "ok";
  return status.code() == Code::kNotFound ? "miss" : status.ToString();
}

}  // namespace

ClusterWork::ClusterWork(ClusterWorld& world, sim::HistoryLog& history, uint64_t seed)
    : world_(world), history_(history), random_(seed + 50) {}

void ClusterWork::Enter(uint32_t n) {
  auto client = std::make_shared<Client>();
  clients_[n] = client;
  client->working = Work(n, client);
}

void ClusterWork::Leave(uint32_t n) {
  const auto found = clients_.find(n);
  if (found == clients_.end()) return;
  const std::shared_ptr<Client> client = found->second;
  client->leaving = true;
  world_.Await(std::move(client->working));
  clients_.erase(n);
}

void ClusterWork::End() {
  while (!clients_.empty()) Leave(clients_.begin()->first);
}

std::shared_ptr<const Chain> ClusterWork::AnyChain(Random& random) const {
  // Mostly one of the latest.
  const size_t recent = std::min<size_t>(chains_.size(), random.Chance(1, 2) ? 40 : SIZE_MAX);
  return chains_[chains_.size() - 1 - random.Below(recent)];
}

Task<void> ClusterWork::Work(uint32_t n, std::shared_ptr<Client> client) {
  Random random(random_.Next());
  const NamespaceOptions options{
      .name = "sim", .fingerprint = "f", .data_shards = 10, .parity_shards = 2, .run_blocks = 4};
  while (!client->leaving) {
    const uint64_t pause = random.Below(2 * static_cast<uint64_t>(kPause.value));
    const Nanos rest{static_cast<int64_t>(pause)};
    co_await world_.clock().SleepUntil(world_.clock().Now() + rest, nullptr);
    if (client->leaving) break;
    const auto space = co_await world_.store(n).Attach(options);
    if (!space.ok() || client->leaving) continue;
    const uint64_t what = random.Below(20);
    if (what < 7 || chains_.empty()) {
      co_await PutSome(n, space.value(), random.Next());
    } else if (what < 19) {
      co_await Get(n, space.value(), AnyChain(random));
    } else {
      co_await Delete(n, space.value(), AnyChain(random));
    }
  }
}

std::vector<uint64_t> ClusterWork::Begin(const sim::HistoryLog::Call& call, const Chain& chain,
                                         std::optional<sim::HistoryLog::PutTerms> terms) {
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < chain.ids.size(); ++i) {
    if (terms) terms->bytes = chain.bytes[i].span();
    numbers.push_back(history_.Begin(call, {.space = 0, .id = chain.ids[i]}, terms));
    ++operations_;
  }
  return numbers;
}

Task<void> ClusterWork::PutSome(uint32_t n, NamespaceId space, uint64_t seed) {
  Random random(seed);
  const bool again = !chains_.empty() && random.Chance(1, 10);
  if (!again) {
    const auto size = static_cast<uint32_t>(1'000 + random.Below(30'000));
    chains_.push_back(
        std::make_shared<const Chain>(RandomChain(random, 1 + random.Below(6), size)));
  }
  const std::shared_ptr<const Chain> chain = again ? AnyChain(random) : chains_.back();
  ChainPut put{.space = space, .chain = chain->ids};
  put.ack = random.Chance(1, 5) ? Ack::kDurable : Ack::kCached;
  put.ttl_seconds = random.Chance(1, 5) ? kShortTtlSeconds : kTtlSeconds;
  for (size_t i = 0; i < chain->ids.size(); ++i) {
    put.blocks.push_back({chain->ids[i], chain->bytes[i].span()});
  }
  const std::string node = NameOf(n);
  const sim::HistoryLog::Call call{"put", kPatiencePut, node};
  const sim::HistoryLog::PutTerms terms{.ttl_millis = int64_t{*put.ttl_seconds} * 1000,
                                        .refreshed = true,
                                        .durable = put.ack == Ack::kDurable,
                                        .bytes = {}};
  const std::vector<uint64_t> numbers = Begin(call, *chain, terms);
  const std::vector<Status> outcomes = co_await world_.store(n).Put(std::move(put));
  for (size_t i = 0; i < numbers.size(); ++i) history_.End(numbers[i], ResultOf(outcomes[i]));
}

Task<void> ClusterWork::Get(uint32_t n, NamespaceId space, std::shared_ptr<const Chain> chain) {
  std::vector<Bytes> rooms;
  std::vector<BlockRead> reads;
  for (size_t i = 0; i < chain->ids.size(); ++i) {
    rooms.emplace_back(AlignUp(chain->bytes[i].size(), kSectorSize));
    reads.push_back({chain->ids[i], rooms.back().span()});
  }
  const std::string node = NameOf(n);
  const sim::HistoryLog::Call call{"get", kPatience, node};
  const std::vector<uint64_t> numbers = Begin(call, *chain);
  const std::vector<BlockReadResult> results = co_await world_.store(n).Get(
      space, chain->ids, std::move(reads), world_.clock().Now() + kPatience);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const ByteSpan bytes = std::as_const(rooms[i]).span().first(results[i].size);
    const bool ok = results[i].status.ok();
    history_.End(numbers[i], ResultOf(results[i].status), ok ? bytes : ByteSpan());
  }
}

Task<void> ClusterWork::Delete(uint32_t n, NamespaceId space, std::shared_ptr<const Chain> chain) {
  const std::string node = NameOf(n);
  const sim::HistoryLog::Call call{"delete", kPatiencePut, node};
  const std::vector<uint64_t> numbers = Begin(call, *chain);
  const Status outcome = co_await world_.store(n).Delete(space, chain->ids, 0);
  for (const uint64_t number : numbers) history_.End(number, ResultOf(outcome));
}

void ClusterWork::ReadAll() {
  uint32_t n = 0;
  while (world_.machine(n).node == nullptr) ++n;
  const auto spaces = world_.machine(n).node->striped().Spaces();
  for (const SpaceInfo& space : spaces) {
    for (const auto& chain : chains_) world_.Await(Get(n, space.id, chain));
  }
}

}  // namespace cairn::kv
