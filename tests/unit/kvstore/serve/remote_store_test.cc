// A client whose server stops, hangs, lies, or comes back.
#include "kvstore/remote/remote_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "kvstore/base/checksum.h"
#include "kvstore/remote/remote_client.h"
#include "tests/unit/kvstore/serve/scripted_server.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;

class RemoteStoreTest : public ::testing::Test {
 protected:
  template <typename T>
  T Await(Task<T> task) {
    return served_.Await(std::move(task));
  }
  NamespaceId Attach(BlockStore& store) {
    return Await(store.Attach({.name = "tests", .fingerprint = "f", .run_blocks = 8})).value();
  }
  BlockReadResult GetOne(RemoteStore& client, const BlockId& id, MutableByteSpan into,
                         Instant deadline = kNever) {
    std::vector<BlockRead> reads(1);
    reads[0] = {.id = id, .into = into};
    return Await(client.Get(space_, {id}, std::move(reads), deadline))[0];
  }

  ServedStore served_;
  NamespaceId space_;
};

constexpr BlockId kId{{3, 4}};

TEST_F(RemoteStoreTest, SaysWhyItCannotConnect) {
  const RemoteParts parts{
      .poller = served_.poller(), .clock = served_.clock(), .log = served_.log()};
  const auto nobody = Await(RemoteStore::Connect(
      parts, {.address = "unix:" + served_.folder().File("nobody")}));
  EXPECT_THAT(nobody, HasCode(Code::kUnavailable));
  EXPECT_THAT(nobody.status().message(), HasSubstr("cannot connect to unix:"));
  EXPECT_THAT(Await(RemoteStore::Connect(parts, {.address = "nonsense"})),
              HasCode(Code::kInvalid));
  ScriptedServer mute(served_, nullptr);
  mute.mute = true;
  EXPECT_THAT(Await(RemoteStore::Connect(
                  parts, {.address = mute.address(), .connect_timeout = Millis(50)})),
              HasCode(Code::kUnavailable));
}

TEST_F(RemoteStoreTest, ComesBackWithItsNamespacesAndItsMemory) {
  served_.StartServer();
  uint64_t restarts = 0;
  for (RemoteStore* client : {&served_.ConnectUnix(), &served_.ConnectTcp()}) {
    served_.Until([&] { return client->connected(); });  // The first one's restart was theirs too.
    const bool shares = client->shares_memory();
    const Blocks blocks = served_.MakeBlocks({20'000});
    space_ = Attach(*client);
    const MutableByteSpan memory = Await(client->NewRegion(32'768)).value();
    EXPECT_THAT(Await(client->Put(ServedStore::PutOf(space_, blocks))), Each(IsOk()));
    served_.StopServer();
    served_.Until([&] { return !client->connected(); });
    // At once, and in words.
    const BlockReadResult lost = GetOne(*client, blocks.ids[0], memory);
    EXPECT_THAT(lost.status, HasCode(Code::kUnavailable));
    EXPECT_THAT(lost.status.message(), HasSubstr("not connected to"));
    EXPECT_THAT(Await(client->Lookup(space_, blocks.ids, {})), HasCode(Code::kUnavailable));
    served_.StartServer();
    served_.Until([&] { return client->connected(); });
    const BlockReadResult back = GetOne(*client, blocks.ids[0], memory);
    ASSERT_THAT(back.status, IsOk());
    EXPECT_EQ(Checksum(memory.first(20'000)), Checksum(blocks.bytes[0].span()));
    EXPECT_EQ(client->remote_stats().connects, ++restarts + 1);
    EXPECT_EQ(served_.stats().shared_bytes_read, shares ? 20'000u : 0u);
  }
}

TEST_F(RemoteStoreTest, AGetThatIsNeverAnsweredEndsAndItsMemoryIsItsOwnAgain) {
  ScriptedServer server(served_, [](ScriptedServer&, const ScriptedServer::Request&) {
    return true;  // Says nothing, ever.
  });
  RemoteStore& client = served_.Connect({.address = server.address()});
  const MutableByteSpan region = Await(client.NewRegion(5 * kSectorSize)).value();
  std::fill(region.begin(), region.end(), uint8_t{0x11});
  const MutableByteSpan into = region.subspan(2 * kSectorSize, 2 * kSectorSize);
  const BlockReadResult result =
      GetOne(client, kId, into, served_.clock().Now() + Millis(20));
  EXPECT_THAT(result.status, HasCode(Code::kDeadline));
  EXPECT_EQ(client.remote_stats().timeouts, 1u);
  // The memory is used for something else; then the server writes to all that it knows of.
  std::fill(into.begin(), into.end(), uint8_t{0x22});
  const MutableByteSpan late = server.regions.at(0)->span();
  std::fill(late.begin(), late.end(), uint8_t{0xee});
  EXPECT_TRUE(std::all_of(into.begin(), into.end(), [](uint8_t byte) { return byte == 0x22; }));
  // The new memory is registered again, under its place in the longer file.
  served_.Until([&] { return server.regions.size() == 2 && client.connected(); });
  EXPECT_EQ(server.regions[1]->span().size(), 7 * kSectorSize);
  EXPECT_EQ(server.regions[1]->span()[5 * kSectorSize], 0x22);
  EXPECT_TRUE(client.shares_memory());
}

TEST_F(RemoteStoreTest, ALateAnswerIsNotTakenForAnother) {
  ScriptedServer server(served_, [](ScriptedServer& self, const ScriptedServer::Request& request) {
    self.kept.push_back(request);
    return true;
  });
  RemoteStore& client = served_.Connect({.address = server.address()});
  std::vector<uint8_t> early(1000);
  std::vector<uint8_t> into(1000);
  const Instant soon = served_.clock().Now() + Millis(20);
  EXPECT_THAT(GetOne(client, kId, early, soon).status, HasCode(Code::kDeadline));
  std::vector<BlockRead> reads(1);
  reads[0] = {.id = kId, .into = into};
  auto second = client.Get(space_, {kId}, std::move(reads), kNever);
  served_.Until([&] { return server.kept.size() == 2; });
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<uint8_t> bytes(1000, static_cast<uint8_t>(i + 1));
    wire::GetAnswer answer;
    answer.blocks.push_back({.status = {}, .size = 1000, .checksum = Checksum(bytes)});
    server.Answer(server.kept[i], wire::EncodeAnswer(Result<wire::GetAnswer>(answer)), bytes);
  }
  EXPECT_THAT(Await(std::move(second))[0].status, IsOk());
  EXPECT_EQ(into, std::vector<uint8_t>(1000, 2));
  EXPECT_EQ(early, std::vector<uint8_t>(1000));  // Its memory was given back.
  EXPECT_TRUE(client.connected());
}

TEST_F(RemoteStoreTest, ABlockDamagedOnItsWayIsNotReturned) {
  ScriptedServer server(served_, [](ScriptedServer& self, const ScriptedServer::Request& request) {
    const std::vector<uint8_t> bytes(1000, 7);
    std::vector<uint8_t> damaged = bytes;
    damaged[500] ^= 1;
    wire::GetAnswer answer;
    answer.blocks.push_back({.status = {}, .size = 1000, .checksum = Checksum(bytes)});
    self.Answer(request, wire::EncodeAnswer(Result<wire::GetAnswer>(answer)), damaged);
    return true;
  });
  RemoteStore& client = served_.Connect({.address = server.address()});
  std::vector<uint8_t> into(1000);
  EXPECT_THAT(GetOne(client, kId, into).status, HasCode(Code::kCorrupt));
  EXPECT_EQ(client.remote_stats().corrupt_blocks, 1u);
}

TEST_F(RemoteStoreTest, AnswersThatMakeNoSenseEndTheConnection) {
  // More bytes than were asked for; another number of blocks; a body that is none.
  const std::vector<std::pair<uint32_t, size_t>> wrongs{{2000, 2000}, {500, 600}, {0, 0}};
  for (const auto& [size, payload] : wrongs) {
    ScriptedServer server(served_, [&](ScriptedServer& self,
                                       const ScriptedServer::Request& request) {
      wire::GetAnswer answer;
      answer.blocks.push_back({.status = {}, .size = size});
      std::vector<uint8_t> body = wire::EncodeAnswer(Result<wire::GetAnswer>(answer));
      if (size == 0) body.push_back(9);
      self.Answer(request, body, std::vector<uint8_t>(payload));
      return true;
    });
    RemoteStore& client = served_.Connect({.address = server.address()});
    std::vector<uint8_t> into(1000);
    EXPECT_THAT(GetOne(client, kId, into).status, HasCode(Code::kUnavailable)) << size;
    served_.Until([&] { return client.remote_stats().disconnects == 1; });
    served_.Disconnect(client);
  }
}

TEST_F(RemoteStoreTest, AServerWithoutASignOfLifeIsLeft) {
  ScriptedServer server(served_, nullptr);
  server.session_timeout_nanos = Millis(80).value;
  RemoteStore& client = served_.Connect({.address = server.address()});
  server.mute = true;
  served_.Until([&] { return client.remote_stats().disconnects == 1; });
  EXPECT_THAT(Await(client.Lookup(space_, {kId}, {})), HasCode(Code::kUnavailable));
}

TEST_F(RemoteStoreTest, MoreCallsThanCreditsWaitTheirTurn) {
  served_.options().requests_max = 3;
  served_.StartServer();
  RemoteStore& client = served_.ConnectTcp();
  space_ = Attach(client);
  const Blocks blocks = served_.MakeBlocks({10'000});
  EXPECT_THAT(Await(client.Put(ServedStore::PutOf(space_, blocks))), Each(IsOk()));
  std::vector<Task<Result<ChainHit>>> lookups;
  for (int i = 0; i < 50; ++i) lookups.push_back(client.Lookup(space_, blocks.ids, {}));
  for (Task<Result<ChainHit>>& lookup : lookups) {
    EXPECT_EQ(Await(std::move(lookup)).value().blocks, 1u);
  }
  EXPECT_EQ(served_.stats().requests_overloaded, 0u);
}

TEST_F(RemoteStoreTest, StopFailsWhatIsInFlight) {
  ScriptedServer server(served_, [](ScriptedServer&, const ScriptedServer::Request&) {
    return true;
  });
  const RemoteParts parts{
      .poller = served_.poller(), .clock = served_.clock(), .log = served_.log()};
  auto connected = Await(RemoteStore::Connect(parts, {.address = server.address()}));
  RemoteStore& client = *connected.value();
  const MutableByteSpan region = Await(client.NewRegion(kSectorSize)).value();
  Task<Result<ChainHit>> lookup = client.Lookup(space_, {kId}, {});
  std::vector<BlockRead> reads(1);
  reads[0] = {.id = kId, .into = region};
  auto get = client.Get(space_, {kId}, std::move(reads), kNever);
  Await(client.Stop());
  EXPECT_THAT(Await(std::move(lookup)), HasCode(Code::kUnavailable));
  EXPECT_THAT(Await(std::move(get))[0].status, HasCode(Code::kUnavailable));
  EXPECT_THAT(Await(client.Lookup(space_, {kId}, {})), HasCode(Code::kUnavailable));
}

TEST_F(RemoteStoreTest, ThreadsUseItThroughAClientOfItsOwn) {
  served_.StartServer();
  std::atomic<bool> stop{false};
  std::thread serving([&] { served_.poller().Run(stop); });
  {
    NullLog log;
    auto connected = RemoteClient::Connect({.address = served_.UnixAddress()}, {}, log);
    ASSERT_THAT(connected, IsOk());
    RemoteClient& remote = *connected.value();
    const auto space = AttachAndWait(
        remote.client(), {.name = "tests", .fingerprint = "f", .run_blocks = 8});
    ASSERT_THAT(space, IsOk());
    const MutableByteSpan memory = remote.NewRegion(256 * kKiB).value();
    std::fill(memory.begin(), memory.end(), uint8_t{0x5a});
    const auto put = remote.Ask<std::vector<Status>>([&](RemoteStore& store) {
      ChainPut order{.space = space.value(), .chain = {kId}};
      order.blocks.resize(1);
      order.blocks[0].id = kId;
      order.blocks[0].bytes = memory;
      return store.Put(std::move(order));
    });
    EXPECT_THAT(put, Each(IsOk()));
    std::mutex mutex;
    std::condition_variable changed;
    int done = 0;
    for (int i = 0; i < 20; ++i) {
      remote.client().Lookup(space.value(), {kId}, [&](Result<ChainHit> hit) {
        const std::lock_guard lock(mutex);
        EXPECT_EQ(hit.value().blocks, 1u);
        ++done;
        changed.notify_one();
      });
    }
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return done == 20; });
    }
    EXPECT_EQ(remote.stats().connects, 1u);
    EXPECT_THAT(remote.FreeRegion(memory), IsOk());
    EXPECT_THAT(remote.FreeRegion(memory), HasCode(Code::kInvalid));
  }
  stop = true;
  served_.loop().Post([] {});
  serving.join();
}

}  // namespace
}  // namespace cairn::kv
