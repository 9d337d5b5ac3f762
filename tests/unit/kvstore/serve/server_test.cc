// The server against clients that break rules, die, stall, or ask for too much.
#include "kvstore/serve/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "kvstore/base/checksum.h"
#include "kvstore/os/shared_memory.h"
#include "tests/unit/kvstore/serve/raw_client.h"

namespace cairn::kv {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;
using wire::Verb;

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

class ServerTest : public ::testing::Test {
 protected:
  // Some blocks that are stored, put by the process itself.
  Blocks Stored(const std::vector<uint32_t>& sizes) {
    Blocks blocks = served_.MakeBlocks(sizes);
    const auto space = served_.Await(
        served_.store().Attach({.name = "tests", .fingerprint = "f", .run_blocks = 8}));
    space_ = space.value();
    EXPECT_THAT(served_.Await(served_.store().Put(ServedStore::PutOf(space_, blocks))),
                Each(IsOk()));
    return blocks;
  }
  wire::GetRequest GetOf(const Blocks& blocks, size_t block, uint32_t capacity) {
    wire::GetRequest get{.space = space_, .chain = blocks.ids, .as_payload = true};
    get.reads.push_back({.id = blocks.ids[block], .capacity = capacity});
    return get;
  }
  // The same, into the memory of a region.
  wire::GetRequest GetInto(const Blocks& blocks, size_t block, wire::Segment segment) {
    wire::GetRequest get{.space = space_, .chain = blocks.ids, .as_payload = false};
    get.reads.push_back(
        {.id = blocks.ids[block], .capacity = segment.size, .segments = {segment}});
    return get;
  }
  void ExpectNothingLeft() {
    served_.Until([this] { return served_.stats().connections == 0; });
    EXPECT_EQ(served_.stats().sessions, 0u);
    EXPECT_EQ(served_.stats().regions, 0u);
    EXPECT_EQ(served_.stats().region_bytes, 0u);
    EXPECT_EQ(served_.stats().requests_in_flight, 0u);
    EXPECT_EQ(served_.stats().payload_bytes, 0u);
  }

  ServedStore served_;
  NamespaceId space_;
};

TEST_F(ServerTest, GarbageCostsItsSenderTheConnectionAndNobodyElse) {
  served_.StartServer();
  RemoteStore& other = served_.ConnectTcp();
  for (const std::string& address : {served_.UnixAddress(), served_.TcpAddress()}) {
    RawClient stranger(served_, address);
    std::vector<uint8_t> garbage(10'000);
    served_.random().Fill(garbage);
    stranger.SendBytes(garbage);
    EXPECT_EQ(stranger.Receive().received, Received::kEnded);
  }
  EXPECT_EQ(served_.stats().malformed_frames, 2u);
  RawClient member(served_, served_.UnixAddress());
  member.Hello();
  member.Send({.verb = Verb::kLookup, .request_id = 7}, {1, 2, 3});
  EXPECT_EQ(member.Receive().received, Received::kEnded);
  EXPECT_EQ(served_.stats().malformed_frames, 3u);
  EXPECT_THAT(served_.Await(other.Attach({.name = "n", .fingerprint = "f"})), IsOk());
}

TEST_F(ServerTest, EveryBrokenFrameIsRefused) {
  served_.StartServer();
  const auto ends = [this](auto send) {
    RawClient client(served_, served_.UnixAddress());
    client.Hello();
    send(client);
    return client.Receive().received == Received::kEnded;
  };
  // A second hello; an answer; payload where none belongs; a body that was changed on the way.
  EXPECT_TRUE(ends([](RawClient& client) { client.Ask(Verb::kHello, wire::HelloRequest()); }));
  EXPECT_TRUE(ends([](RawClient& client) {
    client.Send({.verb = Verb::kPing, .direction = wire::Direction::kAnswer}, {});
  }));
  const std::vector<uint8_t> bytes(100);
  EXPECT_TRUE(ends([&](RawClient& client) { client.Send({.verb = Verb::kPing}, {}, {bytes}); }));
  EXPECT_TRUE(ends([](RawClient& client) {
    std::vector<uint8_t> frame = wire::EncodeFrame({.verb = Verb::kDeleteSpace},
                                                   wire::Encode(wire::NameRequest{"n"}).value());
    frame.back() ^= 1;
    client.SendBytes(std::move(frame));
  }));
  EXPECT_EQ(served_.stats().malformed_frames, 4u);
}

TEST_F(ServerTest, ANamespaceMustBeAttachedInTheSession) {
  served_.StartServer();
  const Blocks blocks = Stored({10'000});
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  const wire::LookupRequest lookup{.space = space_, .chain = blocks.ids};
  EXPECT_THAT(client.Call<ChainHit>(Verb::kLookup, lookup), HasCode(Code::kInvalid));
  EXPECT_THAT(client.Call<wire::GetAnswer>(Verb::kGet, GetOf(blocks, 0, 10'000)),
              HasCode(Code::kInvalid));
  EXPECT_EQ(client.Attach(), space_);
  EXPECT_EQ(client.Call<ChainHit>(Verb::kLookup, lookup).value().blocks, 1u);
}

TEST_F(ServerTest, ADataLaneNeedsTheSecretOfItsSession) {
  served_.StartServer();
  RawClient control(served_, served_.TcpAddress());
  const wire::HelloAnswer hello = control.Hello();
  RawClient lane(served_, served_.TcpAddress());
  EXPECT_THAT(lane.Join(hello.session), IsOk());
  RawClient stranger(served_, served_.TcpAddress());
  Id128 guess = hello.session;
  guess.low ^= 1;
  EXPECT_THAT(stranger.Join(guess), HasCode(Code::kNotFound));
  control.Leave();
  EXPECT_EQ(lane.Receive().received, Received::kEnded);
}

// --- Shared memory ------------------------------------------------------------------------------

TEST_F(ServerTest, OnlyMemoryThatStaysIsMapped) {
  served_.StartServer();
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  constexpr uint64_t kSize = 1 * kMiB;
  const auto memory = SharedMemory::Create(kSize).value();
  EXPECT_THAT(client.Register(1, memory->fd(), kSize), IsOk());
  EXPECT_THAT(client.Register(1, memory->fd(), kSize), HasCode(Code::kConflict));
  EXPECT_THAT(client.Register(2, memory->fd(), 2 * kSize), HasCode(Code::kInvalid));
  EXPECT_THAT(client.Register(2, -1, kSize), HasCode(Code::kInvalid));
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, kSize), 0);
  EXPECT_THAT(client.Register(2, unsealed, kSize), HasCode(Code::kInvalid));
  close(unsealed);
  const std::string path = served_.folder().File("plain");
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(file, kSize), 0);
  EXPECT_THAT(client.Register(2, file, kSize), HasCode(Code::kInvalid));
  close(file);
  // What was registered cannot be taken away under the server.
  EXPECT_NE(ftruncate(memory->fd(), 0), 0);
  EXPECT_EQ(served_.stats().regions, 1u);
  EXPECT_EQ(served_.stats().region_bytes, kSize);
  client.Leave();
  ExpectNothingLeft();
}

TEST_F(ServerTest, RegionsAreBounded) {
  served_.options().regions_max = 2;
  served_.options().region_bytes_max = 1 * kMiB;
  served_.StartServer();
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  const auto memory = SharedMemory::Create(1 * kMiB).value();
  EXPECT_THAT(client.Register(1, memory->fd(), 512 * kKiB), IsOk());
  EXPECT_THAT(client.Register(2, memory->fd(), 768 * kKiB), HasCode(Code::kOverloaded));
  EXPECT_THAT(client.Register(2, memory->fd(), 256 * kKiB), IsOk());
  EXPECT_THAT(client.Register(3, memory->fd(), 4096), HasCode(Code::kOverloaded));
  EXPECT_THAT(client.Call<wire::Empty>(Verb::kUnregister, wire::UnregisterRequest{.region = 1}),
              IsOk());
  EXPECT_THAT(client.Register(3, memory->fd(), 4096), IsOk());
}

TEST_F(ServerTest, ReadsStayInsideTheRegion) {
  served_.StartServer();
  const Blocks blocks = Stored({10'000});
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  client.Attach();
  const auto memory = SharedMemory::Create(64 * kKiB).value();
  EXPECT_THAT(client.Register(5, memory->fd(), 32 * kKiB), IsOk());
  const auto get = [&](wire::Segment segment) {
    return client.Call<wire::GetAnswer>(Verb::kGet, GetInto(blocks, 0, segment));
  };
  constexpr uint32_t kRoom = 12'288;
  EXPECT_THAT(get({.region = 5, .offset = 32 * kKiB - kRoom + 1, .size = kRoom}),
              HasCode(Code::kInvalid));
  EXPECT_THAT(get({.region = 5, .offset = UINT64_MAX - 100, .size = kRoom}),
              HasCode(Code::kInvalid));
  EXPECT_THAT(get({.region = 6, .offset = 0, .size = kRoom}), HasCode(Code::kInvalid));
  const auto fits = get({.region = 5, .offset = 8192, .size = kRoom});
  ASSERT_THAT(fits, IsOk());
  EXPECT_THAT(fits.value().blocks[0].status, IsOk());
  const ByteSpan wanted = blocks.bytes[0].span();
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), memory->span().data() + 8192));
  EXPECT_EQ(served_.stats().shared_bytes_read, 10'000u);
}

TEST_F(ServerTest, ARegionStaysMappedUntilTheReadsOfADeadClientAreDone) {
  served_.StartServer();
  const Blocks blocks = Stored({200'000});
  Event hold(served_.loop());
  served_.HoldReads(&hold);
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  client.Attach();
  const auto memory = SharedMemory::Create(256 * kKiB).value();
  EXPECT_THAT(client.Register(1, memory->fd(), 256 * kKiB), IsOk());
  client.Ask(Verb::kGet, GetInto(blocks, 0, {.region = 1, .offset = 0, .size = 256 * kKiB}));
  served_.Until([this] { return served_.stats().requests_in_flight == 1; });
  client.Leave();
  RawClient after(served_, served_.UnixAddress());  // The end of the other was seen by now.
  after.Hello();
  EXPECT_EQ(served_.stats().regions, 1u);
  EXPECT_EQ(served_.network.known.size(), 1u);
  EXPECT_EQ(served_.stats().requests_in_flight, 1u);
  hold.Set();
  served_.HoldReads(nullptr);
  served_.Until([this] { return served_.stats().sessions == 1; });
  EXPECT_EQ(served_.stats().regions, 0u);
  EXPECT_TRUE(served_.network.known.empty());
  after.Leave();
  ExpectNothingLeft();
}

TEST_F(ServerTest, UnregisteringWaitsForNothingAndReadsGoOn) {
  served_.StartServer();
  const Blocks blocks = Stored({200'000});
  Event hold(served_.loop());
  served_.HoldReads(&hold);
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  client.Attach();
  const auto memory = SharedMemory::Create(256 * kKiB).value();
  EXPECT_THAT(client.Register(1, memory->fd(), 256 * kKiB), IsOk());
  client.Ask(Verb::kGet, GetInto(blocks, 0, {.region = 1, .offset = 0, .size = 256 * kKiB}));
  // Answers come out of order: this one first.
  EXPECT_THAT(client.Call<wire::Empty>(Verb::kUnregister, wire::UnregisterRequest{.region = 1}),
              IsOk());
  EXPECT_EQ(served_.stats().regions, 1u);
  hold.Set();
  served_.HoldReads(nullptr);
  EXPECT_THAT(client.Take<wire::GetAnswer>().value().blocks[0].status, IsOk());
  EXPECT_EQ(served_.stats().regions, 0u);
}

TEST_F(ServerTest, APutWhoseBytesAreNotWhatTheClientMeantIsNotStored) {
  served_.StartServer();
  const Blocks blocks = served_.MakeBlocks({50'000});
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  space_ = client.Attach();
  const auto memory = SharedMemory::Create(64 * kKiB).value();
  EXPECT_THAT(client.Register(1, memory->fd(), 64 * kKiB), IsOk());
  const ByteSpan bytes = blocks.bytes[0].span();
  std::copy(bytes.begin(), bytes.end(), memory->span().begin());
  wire::PutRequest put{.space = space_, .chain = blocks.ids};
  put.blocks.push_back({.id = blocks.ids[0],
                        .size = 50'000,
                        .checksum = Checksum(bytes),
                        .segments = {{.region = 1, .offset = 0, .size = 50'000}}});
  memory->span()[30'000] ^= 1;  // Somebody writes to it after the client has looked.
  EXPECT_THAT(client.Call<std::vector<Status>>(Verb::kPut, put).value(),
              Each(HasCode(Code::kCorrupt)));
  const wire::LookupRequest lookup{.space = space_, .chain = blocks.ids};
  EXPECT_EQ(client.Call<ChainHit>(Verb::kLookup, lookup).value().blocks, 0u);
  memory->span()[30'000] ^= 1;
  EXPECT_THAT(client.Call<std::vector<Status>>(Verb::kPut, put).value(), Each(IsOk()));
  EXPECT_EQ(client.Call<ChainHit>(Verb::kLookup, lookup).value().blocks, 1u);
}

// --- Clients that die, stall or go silent -------------------------------------------------------

TEST_F(ServerTest, AClientKilledInTheMiddleOfAPutLeavesNothing) {
  served_.StartServer();
  const Blocks blocks = served_.MakeBlocks({1'000'000});
  RawClient client(served_, served_.TcpAddress());
  client.Hello();
  space_ = client.Attach();
  wire::PutRequest put{.space = space_, .chain = blocks.ids, .as_payload = true};
  put.blocks.push_back({.id = blocks.ids[0], .size = 1'000'000, .checksum = 1});
  wire::FrameHeader header{.verb = Verb::kPut, .payload_size = 1'000'000, .request_id = 9};
  client.SendBytes(wire::EncodeFrame(header, wire::Encode(put).value()));
  client.SendBytes(std::vector<uint8_t>(400'000));
  served_.Until([this] { return served_.stats().payload_bytes > 0; });
  client.Leave();
  ExpectNothingLeft();
  EXPECT_EQ(served_.Await(served_.store().Lookup(space_, blocks.ids)).value().blocks, 0u);
}

TEST_F(ServerTest, AClientKilledInTheMiddleOfAGetLeavesNothing) {
  served_.StartServer();
  const Blocks blocks = Stored({1'000'000});
  Event hold(served_.loop());
  served_.HoldReads(&hold);
  RawClient client(served_, served_.TcpAddress());
  client.Hello();
  client.Attach();
  client.Ask(Verb::kGet, GetOf(blocks, 0, 1'000'000));
  served_.Until([this] { return served_.stats().payload_bytes > 0; });
  client.Leave();
  hold.Set();
  served_.HoldReads(nullptr);
  ExpectNothingLeft();
}

TEST_F(ServerTest, LeasesEndWithTheirSession) {
  served_.StartServer();
  const Blocks blocks = Stored({10'000});
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  client.Attach();
  const wire::LookupRequest lookup{.space = space_, .chain = blocks.ids, .lease = Seconds(100)};
  const ChainHit hit = client.Call<ChainHit>(Verb::kLookup, lookup).value();
  ASSERT_NE(hit.lease.value, 0u);
  RawClient other(served_, served_.UnixAddress());
  other.Hello();
  const wire::RenewRequest renew{.leases = {hit.lease}, .lease = Seconds(100)};
  EXPECT_THAT(other.Call<std::vector<Status>>(Verb::kRenew, renew).value(),
              Each(HasCode(Code::kNotFound)));  // It is not the other's.
  EXPECT_THAT(client.Call<std::vector<Status>>(Verb::kRenew, renew).value(), Each(IsOk()));
  EXPECT_EQ(served_.store().home().leases().Stats(served_.clock().Now()).active, 1u);
  client.Leave();
  served_.Until([this] { return served_.stats().sessions == 1; });
  EXPECT_EQ(served_.store().home().leases().Stats(served_.clock().Now()).active, 0u);
}

TEST_F(ServerTest, ASilentClientIsCutOff) {
  served_.options().session_timeout = Millis(100);
  served_.StartServer();
  RemoteStore& lively = served_.ConnectUnix();  // It pings.
  RawClient silent(served_, served_.UnixAddress());
  silent.Hello();
  RawClient speechless(served_, served_.UnixAddress());  // Not even a hello.
  EXPECT_EQ(silent.Receive().received, Received::kEnded);
  EXPECT_EQ(speechless.Receive().received, Received::kEnded);
  EXPECT_EQ(served_.stats().sessions_timed_out, 1u);
  EXPECT_TRUE(lively.connected());
  EXPECT_EQ(lively.remote_stats().disconnects, 0u);
}

TEST_F(ServerTest, WhoDoesNotTakeItsAnswersIsCutOffAndHoldsABoundedAmount) {
  served_.options().stall_timeout = Millis(100);
  served_.StartServer();
  const Blocks blocks = Stored({4'000'000});
  RawClient reader(served_, served_.TcpAddress());
  reader.Hello();
  reader.Attach();
  for (int i = 0; i < 60; ++i) reader.Ask(Verb::kGet, GetOf(blocks, 0, 4'000'000));
  uint64_t most = 0;
  served_.Until([&] {
    most = std::max(most, served_.stats().payload_bytes);
    return served_.stats().sessions == 0;
  });
  EXPECT_EQ(served_.stats().sessions_timed_out, 1u);
  EXPECT_GT(served_.stats().requests_overloaded, 0u);
  EXPECT_LE(most, served_.options().session_bytes_max);
  ExpectNothingLeft();
}

// --- Credits and deadlines ----------------------------------------------------------------------

TEST_F(ServerTest, RequestsBeyondTheCreditsAreRefusedAtOnce) {
  served_.options().requests_max = 2;
  served_.StartServer();
  const Blocks blocks = Stored({10'000});
  Event hold(served_.loop());
  served_.HoldReads(&hold);
  RawClient client(served_, served_.UnixAddress());
  EXPECT_EQ(client.Hello().requests_max, 2u);
  client.Attach();
  client.Ask(Verb::kGet, GetOf(blocks, 0, 10'000));
  client.Ask(Verb::kGet, GetOf(blocks, 0, 10'000));
  EXPECT_THAT(client.Call<wire::GetAnswer>(Verb::kGet, GetOf(blocks, 0, 10'000)),
              HasCode(Code::kOverloaded));
  EXPECT_EQ(served_.stats().requests_overloaded, 1u);
  hold.Set();
  served_.HoldReads(nullptr);
  EXPECT_THAT(client.Take<wire::GetAnswer>(), IsOk());
  EXPECT_THAT(client.Take<wire::GetAnswer>(), IsOk());
  EXPECT_THAT(client.Call<wire::GetAnswer>(Verb::kGet, GetOf(blocks, 0, 10'000)), IsOk());
}

TEST_F(ServerTest, WorkPastItsDeadlineIsDropped) {
  served_.options().payload_bytes_max = 64 * kMiB;
  served_.StartServer();
  const Blocks blocks = Stored({10'000});
  Event hold(served_.loop());
  served_.HoldReads(&hold);
  RawClient client(served_, served_.UnixAddress());
  client.Hello();
  client.Attach();
  // Takes all the room there is for payload; the next waits for it longer than it may.
  client.Ask(Verb::kGet, GetOf(blocks, 0, 64 * kMiB));
  RawClient other(served_, served_.UnixAddress());
  other.Hello();
  other.Attach();
  other.Ask(Verb::kGet, GetOf(blocks, 0, 10'000), -1, Millis(20).value);
  served_.Until([this] { return served_.stats().requests_in_flight == 2; });
  const uint64_t gets = served_.store().stats().gets;
  const Instant late = served_.clock().Now() + Millis(21);
  served_.Until([&] { return served_.clock().Now() > late; });
  hold.Set();
  served_.HoldReads(nullptr);
  EXPECT_THAT(other.Take<wire::GetAnswer>(), HasCode(Code::kDeadline));
  EXPECT_EQ(served_.stats().requests_late, 1u);
  EXPECT_EQ(served_.store().stats().gets, gets);
  EXPECT_THAT(client.Take<wire::GetAnswer>().value().blocks[0].status, IsOk());
}

TEST_F(ServerTest, ALookupOvertakesLargeGets) {
  served_.StartServer();
  const Blocks blocks = Stored({4'000'000});
  RawClient control(served_, served_.TcpAddress());
  const Id128 session = control.Hello().session;
  control.Attach();
  RawClient lane(served_, served_.TcpAddress());
  ASSERT_THAT(lane.Join(session), IsOk());
  for (int i = 0; i < 8; ++i) lane.Ask(Verb::kGet, GetOf(blocks, 0, 4'000'000));
  // Nobody takes the blocks from their lane: the lookup is answered all the same.
  const wire::LookupRequest lookup{.space = space_, .chain = blocks.ids};
  EXPECT_EQ(control.Call<ChainHit>(Verb::kLookup, lookup).value().blocks, 1u);
  for (int i = 0; i < 8; ++i) {
    const RawClient::Answer answer = lane.Receive();
    ASSERT_EQ(answer.payload.size(), 4'000'000u);
    EXPECT_EQ(Checksum(answer.payload), Checksum(blocks.bytes[0].span()));
  }
}

// --- Coming and going ---------------------------------------------------------------------------

TEST_F(ServerTest, AThousandClientsLeaveNothingBehind) {
  served_.StartServer();
  const Blocks blocks = Stored({10'000});
  size_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    RemoteStore& client = served_.Connect(
        {.address = i % 4 == 0 ? served_.TcpAddress() : served_.UnixAddress(), .data_lanes = 1});
    const auto space =
        served_.Await(client.Attach({.name = "tests", .fingerprint = "f", .run_blocks = 8}));
    ASSERT_THAT(space, IsOk());
    const MutableByteSpan memory = served_.Await(client.NewRegion(16'384)).value();
    LeaseOrder lease;
    lease.duration = Seconds(600);
    ASSERT_THAT(served_.Await(client.Lookup(space_, blocks.ids, lease)), IsOk());
    if (i % 10 == 0) {
      std::vector<BlockRead> reads(1);
      reads[0] = {.id = blocks.ids[0], .into = memory};
      const auto results = served_.Await(client.Get(space_, blocks.ids, reads, kNever));
      ASSERT_THAT(results[0].status, IsOk());
    }
    served_.Disconnect(client);
    if (i == 10) {
      served_.Until([this] { return served_.stats().connections == 0; });
      before = OpenDescriptors();
    }
  }
  ExpectNothingLeft();
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(served_.store().home().leases().Stats(served_.clock().Now()).active, 0u);
  EXPECT_EQ(served_.stats().sessions_opened, 1000u);
}

TEST_F(ServerTest, MoreClientsThanItTakesAreTold) {
  served_.options().sessions_max = 1;
  served_.StartServer();
  RawClient first(served_, served_.UnixAddress());
  first.Hello();
  RawClient second(served_, served_.UnixAddress());
  EXPECT_THAT(second.Call<wire::HelloAnswer>(Verb::kHello, wire::HelloRequest()),
              HasCode(Code::kOverloaded));
  EXPECT_EQ(second.Receive().received, Received::kEnded);
  RawClient old(served_, served_.UnixAddress());
  wire::HelloRequest hello;
  hello.version_min = hello.version_max = 99;
  EXPECT_THAT(old.Call<wire::HelloAnswer>(Verb::kHello, hello), HasCode(Code::kConflict));
  EXPECT_EQ(served_.stats().sessions_refused, 2u);
}

TEST_F(ServerTest, ASocketFileOfADeadProcessIsReplacedOneInUseIsNot) {
  served_.StartServer();
  const ServerParts parts{.poller = served_.poller(),
                          .clock = served_.clock(),
                          .log = served_.log(),
                          .store = served_.store(),
                          .sessions = served_.store()};
  ServerOptions options;
  options.unix_path = served_.options().unix_path;
  EXPECT_THAT(Server::Start(parts, options), HasCode(Code::kConflict));
  options.unix_path = served_.folder().File("left-behind");
  const int socket = SocketAddress::Parse("unix:" + options.unix_path).value().Listen().value();
  close(socket);
  Result<std::unique_ptr<Server>> started = Server::Start(parts, options);
  ASSERT_THAT(started, IsOk());
  served_.Await(started.value()->Stop());
  options.unix_path = served_.folder().File("no/such/folder");
  EXPECT_THAT(Server::Start(parts, options), HasCode(Code::kInvalid));
  options.unix_path = std::string(200, 'x');
  EXPECT_THAT(Server::Start(parts, options), HasCode(Code::kInvalid));
}

}  // namespace
}  // namespace cairn::kv
