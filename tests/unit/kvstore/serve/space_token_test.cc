// Tokens over the wire: proven by challenge, never sent, and no proof serves twice.
#include "kvstore/types/space_token.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/kvstore/serve/raw_client.h"
#include "tests/unit/kvstore/serve/recording_relay.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;
using testing::HasCode;
using testing::IsOk;
using wire::Verb;

const char* const kToken = "a token that is a secret";

class SpaceTokenTest : public ::testing::Test {
 protected:
  static NamespaceOptions Guarded(const std::string& name = "guarded") {
    return {.name = name, .fingerprint = "f", .run_blocks = 8, .token = kToken};
  }
  // As in a request: with a proof under this nonce in place of the token. Attaches only.
  static NamespaceOptions Proven(NamespaceOptions options, const wire::Challenge& challenge) {
    options.proof = ProveToken({.name = options.name, .token = options.token},
                               {.server = challenge.nonce, .client = {7}});
    options.token.clear();
    options.create = false;
    return options;
  }
  static wire::Challenge Challenge(RawClient& client) {
    return client.Call<wire::Challenge>(Verb::kChallenge, wire::Empty()).value();
  }
  static Result<NamespaceId> Attach(RawClient& client, const NamespaceOptions& options) {
    return client.Call<NamespaceId>(Verb::kAttach, options);
  }
  Result<NamespaceId> AttachHere(NamespaceOptions options) {
    return served_.Await(served_.store().Attach(std::move(options)));
  }

  ServedStore served_;
};

bool Holds(const std::vector<uint8_t>& bytes, ByteSpan part) {
  return std::search(bytes.begin(), bytes.end(), part.begin(), part.end()) != bytes.end();
}

TEST_F(SpaceTokenTest, OneCallCreatesOrAttachesOverTheWireAsInTheProcess) {
  served_.StartServer();
  RemoteStore& tcp = served_.ConnectTcp();
  RemoteStore& local = served_.ConnectUnix();
  const auto made = served_.Await(tcp.Attach(Guarded()));
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(served_.Await(tcp.Attach(Guarded())).value(), made.value());
  EXPECT_EQ(served_.Await(local.Attach(Guarded())).value(), made.value());
  EXPECT_EQ(AttachHere(Guarded()).value(), made.value());
  // And the other way round.
  const auto other = AttachHere(Guarded("other"));
  EXPECT_EQ(served_.Await(tcp.Attach(Guarded("other"))).value(), other.value());
  NamespaceOptions absent = Guarded("absent");
  absent.create = false;
  EXPECT_THAT(served_.Await(tcp.Attach(absent)), HasCode(Code::kNotFound));
  absent.token = std::string(kTokenSizeMax + 1, 'x');
  EXPECT_THAT(served_.Await(tcp.Attach(absent)), HasCode(Code::kInvalid));
}

TEST_F(SpaceTokenTest, AWrongTokenIsRefusedInTheWordsOfTheStoreItself) {
  served_.StartServer();
  RemoteStore& client = served_.ConnectTcp();
  ASSERT_THAT(served_.Await(client.Attach(Guarded())), IsOk());
  const NamespaceOptions open{.name = "open", .fingerprint = "f"};
  ASSERT_THAT(served_.Await(client.Attach(open)), IsOk());
  for (const char* name : {"guarded", "open"}) {
    for (const char* wrong : {"", "a token that is a guess"}) {
      if (std::string(name) == "open" && *wrong == '\0') continue;
      NamespaceOptions options = Guarded(name);
      options.token = wrong;
      options.fingerprint = "another";
      const auto refused = served_.Await(client.Attach(options));
      EXPECT_THAT(refused, HasCode(Code::kConflict)) << name << wrong;
      EXPECT_EQ(refused.status().message(), AttachHere(options).status().message());
    }
  }
}

TEST_F(SpaceTokenTest, OnlyTokensTakeMoreThanOneRequest) {
  served_.StartServer();
  RemoteStore& client = served_.ConnectTcp();
  const auto requests_of = [&](NamespaceOptions options) {
    const uint64_t before = served_.stats().requests;
    EXPECT_THAT(served_.Await(client.Attach(std::move(options))), IsOk());
    return served_.stats().requests - before;
  };
  EXPECT_EQ(requests_of({.name = "open", .fingerprint = "f"}), 1u);
  EXPECT_EQ(requests_of(Guarded()), 4u) << "it is asked for first, then created";
  EXPECT_EQ(requests_of(Guarded()), 2u);
}

TEST_F(SpaceTokenTest, CreatingWhatExistsTellsNobodyItsKey) {
  served_.StartServer();
  ASSERT_THAT(AttachHere(Guarded()), IsOk());
  RecordingRelay relay("127.0.0.1:0", served_.TcpAddress());
  RemoteStore& client =
      served_.Connect({.address = "127.0.0.1:" + std::to_string(relay.port()), .data_lanes = 1});
  EXPECT_THAT(served_.Await(client.CreateSpace(Guarded())), HasCode(Code::kConflict));
  served_.Disconnect(client);
  const StoredKey key = StoredKeyOf({.name = "guarded", .token = kToken});
  bool named = false;
  for (const auto& bytes : relay.Stop()) {
    named = named || Holds(bytes, AsBytes("guarded"));
    EXPECT_FALSE(Holds(bytes, key.digest));
  }
  EXPECT_TRUE(named);
}

TEST_F(SpaceTokenTest, ATokenIsNotAmongTheBytesAndReplayingThemIsRefused) {
  served_.StartServer();
  const std::string server = served_.TcpAddress();
  const std::string unix_relay = "unix:" + served_.folder().File("relay");
  for (const std::string& listen : {std::string("127.0.0.1:0"), unix_relay}) {
    const std::string name = listen == unix_relay ? "by unix" : "by tcp";
    RecordingRelay relay(listen, listen == unix_relay ? served_.UnixAddress() : server);
    const std::string address =
        listen == unix_relay ? listen : "127.0.0.1:" + std::to_string(relay.port());
    const RemoteOptions options{.address = address, .data_lanes = 1};
    for (int session = 0; session < 2; ++session) {
      RemoteStore& client = served_.Connect(options);
      ASSERT_THAT(served_.Await(client.Attach(Guarded(name))), IsOk());
      served_.Disconnect(client);
    }
    // A control and a data lane each: the first session created it, the second attached.
    const std::vector<std::vector<uint8_t>> sent = relay.Stop();
    ASSERT_EQ(sent.size(), 4u);
    const StoredKey key = StoredKeyOf({.name = name, .token = kToken});
    for (const auto& bytes : sent) EXPECT_FALSE(Holds(bytes, AsBytes(kToken)));
    EXPECT_TRUE(Holds(sent[0], AsBytes(name)) && Holds(sent[2], AsBytes(name)));
    EXPECT_TRUE(Holds(sent[0], key.digest)) << "it was created with it";
    EXPECT_FALSE(Holds(sent[2], key.digest));

    RawClient thief(served_, served_.UnixAddress());
    thief.SendBytes(sent[2]);
    EXPECT_THAT(thief.Take<wire::HelloAnswer>(), IsOk());
    EXPECT_THAT(thief.Take<wire::Challenge>(), IsOk());
    const auto attached = thief.Take<NamespaceId>();
    EXPECT_THAT(attached, HasCode(Code::kConflict));
    EXPECT_THAT(attached.status().message(), HasSubstr("has another token"));
    RawClient creator(served_, served_.UnixAddress());
    creator.SendBytes(sent[0]);
    EXPECT_THAT(creator.Take<wire::HelloAnswer>(), IsOk());
    for (const Code refused : {Code::kConflict, Code::kInvalid}) {
      EXPECT_THAT(creator.Take<wire::Challenge>(), IsOk());
      EXPECT_THAT(creator.Take<NamespaceId>(), HasCode(refused));
    }
  }
}

TEST_F(SpaceTokenTest, AProofAnswersOneChallengeOfItsOwnConnectionOnce) {
  ASSERT_THAT(AttachHere(Guarded()), IsOk());
  served_.StartServer();
  RawClient client(served_, served_.TcpAddress());
  client.Hello();
  EXPECT_THAT(Attach(client, Proven(Guarded(), {})), HasCode(Code::kInvalid)) << "unchallenged";
  const wire::Challenge first = Challenge(client);
  EXPECT_THAT(Attach(client, Proven(Guarded(), first)), IsOk());
  EXPECT_THAT(Attach(client, Proven(Guarded(), first)), HasCode(Code::kInvalid)) << "used up";
  // A challenge takes the place of the one before.
  const wire::Challenge stale = Challenge(client);
  EXPECT_NE(stale.nonce, first.nonce);
  (void)Challenge(client);
  EXPECT_THAT(Attach(client, Proven(Guarded(), stale)), HasCode(Code::kConflict));
  // One guess each.
  const wire::Challenge guessed = Challenge(client);
  NamespaceOptions wrong = Guarded();
  wrong.token = "a guess";
  EXPECT_THAT(Attach(client, Proven(wrong, guessed)), HasCode(Code::kConflict));
  EXPECT_THAT(Attach(client, Proven(Guarded(), guessed)), HasCode(Code::kInvalid));
  RawClient other(served_, served_.TcpAddress());
  other.Hello();
  const wire::Challenge elsewhere = Challenge(other);
  (void)Challenge(client);
  EXPECT_THAT(Attach(client, Proven(Guarded(), elsewhere)), HasCode(Code::kConflict));
}

TEST_F(SpaceTokenTest, AProofForOneNamespaceIsNoneForAnother) {
  ASSERT_THAT(AttachHere(Guarded("a")), IsOk());
  ASSERT_THAT(AttachHere(Guarded("b")), IsOk());  // With the same token.
  served_.StartServer();
  RawClient client(served_, served_.TcpAddress());
  client.Hello();
  NamespaceOptions options = Proven(Guarded("a"), Challenge(client));
  options.name = "b";
  EXPECT_THAT(Attach(client, options), HasCode(Code::kConflict));
}

TEST_F(SpaceTokenTest, ANamespaceIsCreatedOnlyWithAKeyThatIsProven) {
  served_.StartServer();
  RawClient client(served_, served_.TcpAddress());
  client.Hello();
  NamespaceOptions options = Proven(Guarded(), Challenge(client));
  options.create = true;
  EXPECT_THAT(Attach(client, options), HasCode(Code::kInvalid)) << "without a key";
  options = Proven(Guarded(), Challenge(client));
  options.create = true;
  options.proof->new_key = StoredKeyOf({.name = "guarded", .token = "somebody else's"});
  EXPECT_THAT(Attach(client, options), HasCode(Code::kInvalid));
  EXPECT_THAT(Attach(client, Proven(Guarded(), Challenge(client))), HasCode(Code::kNotFound));
  options = Proven(Guarded(), Challenge(client));
  options.create = true;
  options.proof->new_key = StoredKeyOf({.name = "guarded", .token = kToken});
  EXPECT_THAT(Attach(client, options), IsOk());
}

TEST_F(SpaceTokenTest, AttachesAtOnceTakeTurnsAndComeBackAfterARestart) {
  served_.StartServer();
  RemoteStore& client = served_.ConnectTcp();
  std::vector<Task<Result<NamespaceId>>> attaching;
  for (int i = 0; i < 20; ++i) attaching.push_back(client.Attach(Guarded(std::to_string(i % 7))));
  std::vector<NamespaceId> spaces;
  for (auto& task : attaching) {
    const auto space = served_.Await(std::move(task));
    ASSERT_THAT(space, IsOk());
    spaces.push_back(space.value());
  }
  served_.StopServer();
  served_.Until([&] { return !client.connected(); });
  served_.StartServer();
  served_.Until([&] { return client.connected(); });
  for (const NamespaceId& space : spaces) {
    EXPECT_THAT(served_.Await(client.Lookup(space, {{{1, 2}}}, {})), IsOk());
  }
}

TEST_F(SpaceTokenTest, AClientThatWouldSendItsTokenIsToldOfTheVersion) {
  served_.StartServer();
  RawClient old(served_, served_.TcpAddress());
  wire::HelloRequest hello;
  hello.version_min = hello.version_max = 1;
  const auto answer = old.Call<wire::HelloAnswer>(Verb::kHello, hello);
  EXPECT_THAT(answer, HasCode(Code::kConflict));
  EXPECT_THAT(answer.status().message(), HasSubstr("version 2"));
}

}  // namespace
}  // namespace cairn::kv
