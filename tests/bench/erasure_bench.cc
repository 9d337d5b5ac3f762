// Encode and decode at 10+2 against ISA-L and against this machine's memory, in interleaved rounds.
//
//   erasure_bench [--quick] [--json]
//
// Values are data bytes (k * shard size) per second in GB/s (1e9). Every contestant runs once per
// round on the same buffers; a value is the median over the rounds, a ratio the median of the
// rounds' own ratios, so that a machine that changes pace between rounds does not tilt it.
//   .dram    stripes over an arena larger than the caches; .cached  one stripe again and again
//   .vs_pq   against ISA-L's RAID-6 routine; .vs_read  against reading k streams and nothing else;
//            without either: against ISA-L's general encode (ec_encode_data)
// Shard buffers are skewed by 4160 bytes, or a power-of-two stride would crowd few cache sets.
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "erasure/codec.h"
#include "erasure/matrix.h"
#include "kvstore/base/random.h"

namespace cairn::erasure {
namespace {

constexpr size_t kData = 10;
constexpr size_t kParity = 2;
constexpr size_t kTotal = kData + kParity;
constexpr size_t kSlots = kTotal + kParity;  // The last ones take rebuilt shards.
constexpr size_t kSkew = 4160;
constexpr uint8_t kLost[] = {3, 7};

struct Options {
  bool quick = false;
  bool json = false;
};

struct Line {
  std::string name;
  double value;
  double baseline;
  double ratio;
};

[[noreturn]] void Fail(const char* reason) {
  std::fprintf(stderr, "erasure_bench: %s\n", reason);
  std::exit(1);
}

// Stripes side by side in one mapping, filled with random data.
class Arena {
 public:
  Arena(size_t shard_size, size_t stripe_count)
      : shard_size_(shard_size), stripe_count_(stripe_count) {
    void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) Fail("not enough memory");
    memory_ = static_cast<uint8_t*>(memory);
    kv::Random(1).Fill({memory_, bytes()});
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { munmap(memory_, bytes()); }

  uint8_t* slot(size_t stripe, size_t index) const {
    return memory_ + (stripe * kSlots + index) * (shard_size_ + kSkew);
  }
  size_t shard_size() const { return shard_size_; }
  size_t stripe_count() const { return stripe_count_; }

 private:
  size_t bytes() const { return stripe_count_ * kSlots * (shard_size_ + kSkew); }
  const size_t shard_size_;
  const size_t stripe_count_;
  uint8_t* memory_ = nullptr;
};

using Contestant = std::function<void(const Arena& arena, size_t stripe)>;

// ISA-L's general routine with given rows; sources and outputs are slots of the stripe.
class IsalRows {
 public:
  IsalRows(std::vector<uint8_t> rows, std::vector<size_t> sources, std::vector<size_t> outputs)
      : sources_(std::move(sources)), outputs_(std::move(outputs)), tables_(rows.size() * 32) {
    ec_init_tables(static_cast<int>(sources_.size()), static_cast<int>(outputs_.size()),
                   rows.data(), tables_.data());
  }
  void operator()(const Arena& arena, size_t stripe) {
    uint8_t* sources[kData];
    uint8_t* outputs[kParity];
    for (size_t i = 0; i < sources_.size(); ++i) sources[i] = arena.slot(stripe, sources_[i]);
    for (size_t i = 0; i < outputs_.size(); ++i) outputs[i] = arena.slot(stripe, outputs_[i]);
    ec_encode_data(static_cast<int>(arena.shard_size()), static_cast<int>(sources_.size()),
                   static_cast<int>(outputs_.size()), tables_.data(), sources, outputs);
  }

 private:
  std::vector<size_t> sources_;
  std::vector<size_t> outputs_;
  std::vector<uint8_t> tables_;
};

std::span<uint8_t> SlotSpan(const Arena& arena, size_t stripe, size_t index) {
  return {arena.slot(stripe, index), arena.shard_size()};
}

Contestant OurEncode(const Codec& codec) {
  return [codec](const Arena& arena, size_t stripe) {
    std::span<const uint8_t> data[kData];
    std::span<uint8_t> parity[kParity];
    for (size_t i = 0; i < kData; ++i) data[i] = SlotSpan(arena, stripe, i);
    for (size_t i = 0; i < kParity; ++i) parity[i] = SlotSpan(arena, stripe, kData + i);
    codec.Encode(data, parity);
  };
}

std::vector<uint8_t> SurvivorsOf(size_t lost_count) {
  std::vector<uint8_t> indices;
  for (uint8_t i = 0; indices.size() < kData; ++i) {
    if (std::find(kLost, kLost + lost_count, i) == kLost + lost_count) indices.push_back(i);
  }
  return indices;
}

Contestant OurDecode(const Codec& codec, size_t lost_count) {
  return [codec, lost_count](const Arena& arena, size_t stripe) {
    std::vector<Survivor> survivors;
    std::vector<Wanted> wanted;
    for (const uint8_t i : SurvivorsOf(lost_count)) {
      survivors.push_back({i, SlotSpan(arena, stripe, i)});
    }
    for (size_t i = 0; i < lost_count; ++i) {
      wanted.push_back({kLost[i], SlotSpan(arena, stripe, kTotal + i)});
    }
    if (!codec.Reconstruct(survivors, wanted)) Fail("no reconstruction");
  };
}

Contestant IsalEncode(const Shape& shape) {
  std::vector<uint8_t> rows;
  for (size_t i = 0; i < kParity; ++i) {
    for (size_t j = 0; j < kData; ++j) rows.push_back(Coefficient(shape.code, i, j));
  }
  return IsalRows(rows, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 11});
}

Contestant IsalDecode(const Shape& shape, size_t lost_count) {
  const std::vector<uint8_t> survivors = SurvivorsOf(lost_count);
  Factors factors;
  PlanDecode(shape, survivors, std::span(kLost).first(lost_count), factors);
  std::vector<size_t> outputs;
  for (size_t i = 0; i < lost_count; ++i) outputs.push_back(kTotal + i);
  return IsalRows({factors.begin(), factors.begin() + static_cast<ptrdiff_t>(lost_count * kData)},
                  {survivors.begin(), survivors.end()}, outputs);
}

void IsalRaid6(const Arena& arena, size_t stripe) {
  void* shards[kTotal];
  for (size_t i = 0; i < kTotal; ++i) shards[i] = arena.slot(stripe, i);
  if (pq_gen(kTotal, static_cast<int>(arena.shard_size()), shards) != 0) Fail("pq_gen refused");
}

using Wide = uint64_t __attribute__((vector_size(64)));

// Adds up 256 bytes of each of the k streams in turn: the access pattern of encode without its
// stores. Compiled for the widest registers there are.
#if defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#endif
uint64_t ReadStreams(const uint8_t* const* streams, size_t size) {
  Wide sums[4] = {};
  for (size_t at = 0; at < size; at += 256) {
    for (size_t i = 0; i < kData; ++i) {
      for (size_t v = 0; v < 4; ++v) {
        Wide word;
        std::memcpy(&word, streams[i] + at + v * 64, sizeof word);
        sums[v] ^= word;
      }
    }
  }
  const Wide all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return all[0] ^ all[1] ^ all[2] ^ all[3] ^ all[4] ^ all[5] ^ all[6] ^ all[7];
}

void ReadOnly(const Arena& arena, size_t stripe) {
  const uint8_t* streams[kData];
  for (size_t i = 0; i < kData; ++i) streams[i] = arena.slot(stripe, i);
  const uint64_t sum = ReadStreams(streams, arena.shard_size());
  asm volatile("" : : "r"(sum));  // The reads must happen.
}

// A contestant that is fast and wrong must not be timed.
void CheckAnswers(const Arena& arena, const Contestant& ours, const Contestant& theirs,
                  size_t first_slot) {
  const auto outputs = [&] {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < kParity; ++i) {
      const auto slot = SlotSpan(arena, 0, first_slot + i);
      bytes.insert(bytes.end(), slot.begin(), slot.end());
    }
    return bytes;
  };
  theirs(arena, 0);
  const auto expected = outputs();
  for (size_t i = 0; i < kParity; ++i) arena.slot(0, first_slot + i)[0] ^= 1;
  ours(arena, 0);
  // A single-loss decode leaves the second slot alone; undo its flip.
  if (first_slot == kTotal && outputs() != expected) arena.slot(0, first_slot + 1)[0] ^= 1;
  if (outputs() != expected) Fail("the answers differ from ISA-L's");
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Race {
  std::string name;
  Contestant run;
  std::vector<double> rates;  // One per round.
};

void RunRound(const Arena& arena, size_t passes, Race& race) {
  const auto start = std::chrono::steady_clock::now();
  for (size_t pass = 0; pass < passes; ++pass) {
    for (size_t stripe = 0; stripe < arena.stripe_count(); ++stripe) race.run(arena, stripe);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  const size_t bytes = passes * arena.stripe_count() * kData * arena.shard_size();
  race.rates.push_back(static_cast<double>(bytes) / spent.count() / 1e9);
}

Line Compare(const std::string& name, const Race& ours, const Race& baseline) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.rates.size(); ++i) {
    ratios.push_back(ours.rates[i] / baseline.rates[i]);
  }
  return {name, Median(ours.rates), Median(baseline.rates), Median(ratios)};
}

std::vector<Line> Measure(const Codec& codec, const std::string& suffix, const Arena& arena,
                          size_t passes, size_t rounds) {
  enum { kEncode, kIsalEncode, kPq, kRead, kDecode1, kIsal1, kDecode2, kIsal2 };
  std::vector<Race> races = {
      {"encode", OurEncode(codec), {}},      {"", IsalEncode(codec.shape()), {}},
      {"", IsalRaid6, {}},                   {"", ReadOnly, {}},
      {"decode1", OurDecode(codec, 1), {}},  {"", IsalDecode(codec.shape(), 1), {}},
      {"decode2", OurDecode(codec, 2), {}},  {"", IsalDecode(codec.shape(), 2), {}}};
  CheckAnswers(arena, races[kEncode].run, races[kIsalEncode].run, kData);
  for (size_t i = 0; i < arena.stripe_count(); ++i) races[kEncode].run(arena, i);
  CheckAnswers(arena, races[kDecode1].run, races[kIsal1].run, kTotal);
  CheckAnswers(arena, races[kDecode2].run, races[kIsal2].run, kTotal);
  for (size_t round = 0; round < rounds; ++round) {
    for (Race& race : races) RunRound(arena, passes, race);
  }
  std::vector<Line> lines;
  for (const size_t ours : {kEncode, kDecode1, kDecode2}) {
    const std::string name = "erasure." + races[ours].name + ".10+2." + suffix;
    lines.push_back(Compare(name, races[ours], races[ours + 1]));
    if (ours == kEncode) lines.push_back(Compare(name + ".vs_pq", races[ours], races[kPq]));
    lines.push_back(Compare(name + ".vs_read", races[ours], races[kRead]));
  }
  return lines;
}

void Print(const std::vector<Line>& lines, const Options& options) {
  if (!options.json) {
    std::printf("kernel %s\n%-48s %8s %9s %6s\n", NameOf(AvailableKernels().back()).data(), "name",
                "GB/s", "baseline", "ratio");
    for (const Line& line : lines) {
      std::printf("%-48s %8.1f %9.1f %6.2f\n", line.name.c_str(), line.value, line.baseline,
                  line.ratio);
    }
    return;
  }
  std::printf("[\n");
  for (const Line& line : lines) {
    std::printf("  {\"name\": \"%s\", \"value\": %.3f, \"unit\": \"GB/s\", \"baseline\": %.3f, "
                "\"ratio\": %.3f}%s\n",
                line.name.c_str(), line.value, line.baseline, line.ratio,
                &line == &lines.back() ? "" : ",");
  }
  std::printf("]\n");
}

void Main(const Options& options) {
  const Shape shape{.data_shards = kData, .parity_shards = kParity, .code = CodeId::kPQ};
  const Codec codec = *Codec::Create(shape);
  const size_t rounds = options.quick ? 5 : 21;
  const size_t arena_bytes = options.quick ? size_t{640} << 20 : size_t{1} << 30;
  std::vector<Line> lines;
  for (const size_t kib : {size_t{128}, size_t{1024}}) {
    const size_t size = kib * 1024;
    const std::string label = kib == 1024 ? "1MiB" : std::to_string(kib) + "KiB";
    const auto add = [&](const std::string& state, size_t stripes, size_t passes) {
      const Arena arena(size, stripes);
      const auto more = Measure(codec, label + "." + state, arena, passes, rounds);
      lines.insert(lines.end(), more.begin(), more.end());
    };
    add("dram", arena_bytes / (kSlots * size), 1);
    add("cached", 1, (size_t{128} << 20) / (kData * size));
  }
  Print(lines, options);
}

}  // namespace
}  // namespace cairn::erasure

int main(int argc, char** argv) {
  cairn::erasure::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--json") {
      options.json = true;
    } else {
      std::fprintf(stderr, "usage: %s [--quick] [--json]\n", argv[0]);
      return 2;
    }
  }
  cairn::erasure::Main(options);
  return 0;
}
