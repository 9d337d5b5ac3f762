// A node over sparse files and synthetic metadata: 12 targets, 10 + 2, stripes of 16 x 256 KiB.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>

#include "kvstore/async/lanes.h"
#include "kvstore/client/target_choice.h"
#include "kvstore/metadata/metadata_scan.h"
#include "kvstore/metadata/rocksdb_store.h"
#include "kvstore/node/node.h"
#include "kvstore/os/file_disk.h"
#include "kvstore/os/system_clock.h"
#include "kvstore/os/thread_workers.h"
#include "kvstore/segment/disk_segment_log.h"
#include "kvstore/segment/format.h"
#include "kvstore/types/little_endian.h"
#include "tests/bench/index_bench.h"

namespace cairn::bench {
namespace {

using namespace kv;  // NOLINT: a benchmark, of this namespace only.

constexpr uint32_t kTargets = 12;
constexpr uint32_t kBlocksPerStripe = 16;
constexpr uint64_t kStripesPerRun = 4;
constexpr uint64_t kBlockBytes = 256 * kKiB;
constexpr uint32_t kShardBytes = 103 * kSectorSize;  // A tenth of 4 MiB, in whole sectors.
constexpr uint64_t kRecordSectors = 104;
constexpr uint64_t kRecordsPerSegment = (kSegmentSizeDefault / kSectorSize - 1) / kRecordSectors;
constexpr uint64_t kEpoch = (uint64_t{1} << 32) | 7;
constexpr size_t kBatch = 4000;

uint64_t Mix(uint64_t value) {
  value = (value ^ value >> 31) * 0x7fb5d329728ea185u;
  value = (value ^ value >> 27) * 0x81dadef4bc2dd44du;
  return value ^ value >> 33;
}
// Ascending, so that the metadata is written in its own order.
StripeId StripeAt(uint64_t i) { return {{(i + 1) << 36, Mix(i)}}; }
BlockId BlockAt(uint64_t i) { return {{Mix(i * 2 + 1), Mix(i * 2 + 2)}}; }
RunId RunOf(uint64_t stripe) {
  const uint64_t first = stripe / kStripesPerRun * kStripesPerRun * kBlocksPerStripe;
  return RunId{BlockAt(first)};
}

double CpuSeconds(clockid_t clock) {
  timespec spent{};
  clock_gettime(clock, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
}

double ThreadSeconds() { return CpuSeconds(CLOCK_THREAD_CPUTIME_ID); }
double ProcessSeconds() { return CpuSeconds(CLOCK_PROCESS_CPUTIME_ID); }

class SparseMedia final : public MediaSource {
 public:
  SparseMedia(std::string folder, Poller& poller, Workers& workers, Log& log)
      : folder_(std::move(folder)), poller_(poller), workers_(workers), log_(log) {}
  uint32_t count() const override { return kTargets; }
  Task<Result<TargetMedium>> Open(uint32_t i) override {
    const std::string path = folder_ + "/target-" + std::to_string(i);
    FileDiskOptions options;
    options.path = path + ".segments";
    auto disk = FileDisk::Open(poller_, log_, options);
    Must(disk.status());
    auto metadata = OpenRocksDbStore(path + ".index", poller_.loop(), workers_, memory_);
    Must(metadata.status());
    co_return TargetMedium{std::move(disk).value(), std::move(metadata).value(), path};
  }
  Task<Result<TargetMedium>> Replace(uint32_t, Status why) override { co_return why; }
  Task<Result<TargetMedium>> ForgetMetadata(uint32_t, Status why) override { co_return why; }

 private:
  const std::string folder_;
  Poller& poller_;
  Workers& workers_;
  Log& log_;
  RocksDbMemory memory_{32 * kMiB, 32 * kMiB};
};

// The machine around the nodes that are opened on it one after another.
struct Bed {
  explicit Bed(const std::string& folder) : media(folder, *poller, workers, log) {}
  NodeParts parts() {
    return {.loop = loop, .clock = clock, .workers = workers, .random = random, .log = log,
            .media = media};
  }
  Loop loop;
  NullLog log;
  std::unique_ptr<Poller> poller = Poller::Create(loop, log, PollerOptions()).value();
  SystemClock clock{*poller};
  ThreadWorkers workers{*poller, 2};
  Random random{1};
  SparseMedia media;
};

void MakeSparse(const std::string& path, uint64_t size) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  Must(fd >= 0 && ftruncate(fd, static_cast<off_t>(size)) == 0, path + ": cannot be made");
  close(fd);
}

std::string SegmentEntry() {
  FieldWriter fields;
  fields.Add(uint8_t{2});  // Sealed.
  fields.Add(uint8_t{0});
  fields.Add(kEpoch);
  fields.Add(kSegmentSizeDefault);
  fields.Add(kSegmentSizeDefault);
  fields.Add(int64_t{4'000'000'000'000});
  return std::string(AsText(fields.bytes()));
}

std::string ShardEntry(uint64_t stripe, uint32_t target) {
  FieldWriter fields;
  fields.Add(static_cast<uint32_t>(stripe / kRecordsPerSegment));
  fields.Add(kEpoch);
  fields.Add(static_cast<uint32_t>(1 + stripe % kRecordsPerSegment * kRecordSectors));
  fields.Add(kShardBytes);
  fields.Add(uint16_t{1});
  fields.Add(static_cast<uint8_t>(target));
  return std::string(AsText(fields.bytes()));
}

// Writes what a store of `stripes` stripes would have written, without the bytes of its blocks.
class Writer {
 public:
  Writer(Bed& bed, uint64_t stripes) : bed_(bed), stripes_(stripes) {
    for (uint32_t i = 0; i < kTargets; ++i) {
      media_.push_back(bed.poller->Await(bed.media.Open(i)).value());
      const SegmentLog::Parts parts{.loop = bed.loop, .clock = bed.clock, .workers = bed.workers,
                                    .disk = *media_[i].disk, .metadata = *media_[i].metadata,
                                    .random = bed.random, .log = bed.log};
      auto log = bed.poller->Await(SegmentLog::Open(parts, SegmentLogOptions()));
      Must(log.status());
      ids_.push_back(log.value()->id());
      Must(bed.poller->Await(log.value()->Stop()));
    }
    batches_.resize(kTargets);
  }

  const std::vector<TargetId>& ids() const { return ids_; }

  void WriteSegments() {
    const auto segments = static_cast<uint32_t>(stripes_ / kRecordsPerSegment + 1);
    for (uint32_t target = 0; target < kTargets; ++target) {
      const auto write = [&](uint64_t i) {
        return WriteHeader(target, static_cast<uint32_t>(i));
      };
      Must(bed_.poller->Await(RunInLanes(segments, 32, write)));
      for (uint32_t i = 0; i < segments; ++i) {
        batches_[target].Put(SegmentKey(i), SegmentEntry());
      }
    }
    Flush();
  }

  void WriteTables(NamespaceId space) {
    StripeRecord record;
    record.state = {.space = space, .expires_at = {4'000'000'000'000},
                    .last_access = 1'700'000'000, .keep_until = 0, .position = 0,
                    .ttl_seconds = 86400, .payload_bytes = kBlocksPerStripe * kBlockBytes,
                    .kind = RetentionKind::kFixed, .hit = false};
    std::vector<TargetId> sorted = ids_;
    std::sort(sorted.begin(), sorted.end());
    for (uint64_t i = 0; i < stripes_; ++i) {
      for (uint32_t target = 0; target < kTargets; ++target) {
        batches_[target].Put(ShardKey(StripeAt(i)), ShardEntry(i, target));
      }
      record.run = RunOf(i);
      const std::vector<TargetId> order = ReplicaOrder(space, record.run, sorted);
      for (uint32_t replica = 0; replica < kIndexReplicas; ++replica) {
        batches_[PlaceOf(order[replica])].Put(StateKey(StripeAt(i)), EncodeRecord(record));
      }
      if (batches_[0].changes.size() >= kBatch) Flush();
    }
    Flush();
  }

 private:
  Task<Status> WriteHeader(uint32_t target, uint32_t segment) {
    const SegmentHeader header{ids_[target], segment, kEpoch};
    const Bytes sector = EncodeSegmentHeader(header);
    const uint64_t at = kSegmentsOffset + segment * kSegmentSizeDefault;
    co_return co_await media_[target].disk->Write(at, sector.sectors());
  }
  size_t PlaceOf(TargetId id) const {
    return static_cast<size_t>(std::find(ids_.begin(), ids_.end(), id) - ids_.begin());
  }
  void Flush() {
    std::vector<Task<Status>> writes;
    for (uint32_t target = 0; target < kTargets; ++target) {
      writes.push_back(media_[target].metadata->Write(std::exchange(batches_[target], {})));
    }
    for (Task<Status>& write : writes) Must(bed_.poller->Await(std::move(write)));
  }

  Bed& bed_;
  const uint64_t stripes_;
  std::vector<TargetMedium> media_;
  std::vector<TargetId> ids_;
  std::vector<MetadataBatch> batches_;
};

NamespaceOptions SpaceOptions() {
  NamespaceOptions options;
  options.name = "bench";
  options.fingerprint = "bench";
  options.retention = RetentionKind::kFixed;
  options.ttl_seconds = 7 * 86400;
  return options;
}

// The limit of a start: the same entries, read by as many threads and dropped.
double ScanSeconds(Bed& bed, uint64_t& entries) {
  std::vector<TargetMedium> media;
  for (uint32_t i = 0; i < kTargets; ++i) {
    media.push_back(bed.poller->Await(bed.media.Open(i)).value());
  }
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<uint64_t> counted{0};
  const auto count = [&](const MetadataStore::Entry&) { ++counted; };
  for (const char* prefix : {"h", "it/"}) {
    std::vector<Task<Status>> scans;
    for (TargetMedium& medium : media) {
      scans.push_back(ScanAll(bed.workers, *medium.metadata, prefix, count));
    }
    for (Task<Status>& scan : scans) Must(bed.poller->Await(std::move(scan)));
  }
  entries = counted;
  return Since(begin);
}

IndexedStripe StripeToPublish(uint64_t i, NamespaceId space, const std::vector<TargetId>& ids) {
  IndexedStripe indexed;
  Manifest& manifest = indexed.manifest;
  manifest.stripe = StripeAt(i);
  manifest.space = space;
  manifest.run = RunOf(i);
  manifest.code_id = 1;
  manifest.data_shards = 10;
  manifest.parity_shards = 2;
  manifest.shard_size = kShardBytes;
  manifest.retention = {RetentionKind::kFixed, 86400, {4'000'000'000'000}};
  manifest.targets = ids;
  for (uint64_t b = 0; b < kBlocksPerStripe; ++b) {
    const uint64_t block = i * kBlocksPerStripe + b;
    manifest.blocks.push_back({BlockAt(block), b * kBlockBytes, kBlockBytes, Mix(block)});
    const uint32_t pieces = PieceCount(manifest, manifest.blocks.back());
    for (uint32_t p = 0; pieces > 1 && p < pieces; ++p) manifest.piece_checksums.push_back(p);
  }
  indexed.expires_at = manifest.retention.expires_at;
  return indexed;
}

// Block ids a second of the loop's thread: chains of 64 of the first `runs` runs, in no order.
double LookupRate(Node& node, Poller& poller, NamespaceId space, uint64_t runs, uint64_t lookups) {
  constexpr uint64_t kChain = kStripesPerRun * kBlocksPerStripe;
  std::vector<std::vector<BlockId>> chains(lookups);
  for (uint64_t i = 0; i < lookups; ++i) {
    const uint64_t run = lookups == runs ? (i * 7919) % runs : Mix(i) % runs;
    for (uint64_t b = 0; b < kChain; ++b) chains[i].push_back(BlockAt(run * kChain + b));
  }
  const double begin = ThreadSeconds();
  for (std::vector<BlockId>& chain : chains) {
    const auto hit = poller.Await(node.striped().Lookup(space, std::move(chain)));
    Must(hit.ok() && hit.value().blocks == kChain, "a lookup does not find its whole chain");
  }
  return static_cast<double>(lookups * kChain) / (ThreadSeconds() - begin);
}

uint64_t TableBytes(const Node& node) {
  uint64_t bytes = 0;
  for (const auto& target : node.targets()) {
    const LocalTarget& local = *target;
    bytes += local.log().stats().memory_bytes + local.index().memory_bytes();
  }
  return bytes;
}

}  // namespace

std::vector<Figure> MeasureBigIndex(const Options& options) {
  const std::string folder = options.folder + "/big";
  std::filesystem::create_directories(folder);
  const uint64_t stripes = options.quick ? 62'500 : 625'000;
  const uint64_t segments = stripes / kRecordsPerSegment + 64;
  for (uint32_t i = 0; i < kTargets; ++i) {
    MakeSparse(folder + "/target-" + std::to_string(i) + ".segments",
               kSegmentsOffset + segments * kSegmentSizeDefault);
  }
  Bed bed(folder);
  NodeOptions node_options;
  std::vector<TargetId> ids;
  NamespaceId space;
  {
    auto node = bed.poller->Await(Node::Open(bed.parts(), node_options));
    Must(node.status());
    space = bed.poller->Await(node.value()->store().Attach(SpaceOptions())).value();
    Must(bed.poller->Await(node.value()->Stop()));
  }
  {
    Writer writer(bed, stripes);
    ids = writer.ids();
    writer.WriteSegments();
    writer.WriteTables(space);
  }
  std::printf("written: %llu stripes\n", static_cast<unsigned long long>(stripes));
  uint64_t entries = 0;
  const double scan = ScanSeconds(bed, entries);
  Must(entries == stripes * (kTargets + kIndexReplicas), "the metadata is not as it was written");

  const auto begin = std::chrono::steady_clock::now();
  const double thread_before = ThreadSeconds();
  const double process_before = ProcessSeconds();
  auto opened = bed.poller->Await(Node::Open(bed.parts(), node_options));
  const double start = Since(begin);
  std::printf("start: %.2f s; %.2f s of processor, of these %.2f s on the loop's thread\n", start,
              ProcessSeconds() - process_before, ThreadSeconds() - thread_before);
  Must(opened.status());
  Node& node = *opened.value();
  uint64_t shards = 0;
  for (const auto& target : node.targets()) shards += target->log().stats().shards;
  Must(shards == stripes * kTargets, "the node did not load every shard");
  const double tib = static_cast<double>(stripes * kBlocksPerStripe * kBlockBytes) / (1ull << 40);
  const double mib = static_cast<double>(TableBytes(node)) / static_cast<double>(kMiB);

  const uint64_t runs = options.quick ? 1000 : 4000;
  for (uint64_t i = 0; i < runs * kStripesPerRun; ++i) {
    const IndexedStripe stripe = StripeToPublish(i, space, ids);
    Must(bed.poller->Await(node.striped().index().Publish(stripe, Durability::kProcess)));
  }
  const double cold = LookupRate(node, *bed.poller, space, runs, runs);
  const double warm = LookupRate(node, *bed.poller, space, runs, runs * 10);
  Must(bed.poller->Await(node.Stop()));
  return {{"store.start", start, "s", scan, "reading the same entries from RocksDB"},
          {"store.memory_per_tib", mib / tib, "MiB", 128, "the bound"},
          {"store.lookup", warm, "ids/s", 1e6, "the aim"},
          {"store.lookup_cold", cold, "ids/s", 1e6, "the aim of warm ones"}};
}

}  // namespace cairn::bench
