// TLS sessions by themselves, and nodes that speak it or not.
#include "kvstore/os/tls.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kvstore/base/random.h"
#include "kvstore/os/renewed_tls.h"
#include "kvstore/os/socket_stream.h"
#include "kvstore/os/tcp_network.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tls_authority.h"
#include "tests/unit/kvstore/os/os_fixture.h"

namespace cairn::kv {
namespace {

using testing::HasCode;
using testing::IsOk;
using testing::TemporaryFolder;
using testing::TlsAuthority;
using ::testing::HasSubstr;

std::shared_ptr<const TlsContext> Load(const TlsFiles& files) {
  return TlsContext::Load(files).value();
}

struct Pair {
  Pair(const TlsFiles& caller_files, const TlsFiles& callee_files, const std::string& name)
      : caller(Load(caller_files)->NewSession(TlsRole::kCaller, name)),
        callee(Load(callee_files)->NewSession(TlsRole::kCallee, "")) {}

  static size_t Move(TlsSession& from, TlsSession& to) {
    std::vector<uint8_t> bytes;
    from.Drain(bytes);
    to.Feed(bytes);
    return bytes.size();
  }
  // The first error of either side; ok when both are established.
  Status Handshake() {
    do {
      const Status of_caller = caller->Handshake();
      if (!of_caller.ok()) return of_caller;
      Move(*caller, *callee);
      const Status of_callee = callee->Handshake();
      if (!of_callee.ok()) return of_callee;
    } while (Move(*callee, *caller) > 0 || !caller->established());
    return Status();
  }

  std::unique_ptr<TlsSession> caller;
  std::unique_ptr<TlsSession> callee;
};

class Tls : public ::testing::Test {
 protected:
  TlsFiles OnlyCa() const { return {.ca_file = authority_.ca_file()}; }
  static TlsFiles WithoutCa(TlsFiles files) {
    files.ca_file.clear();
    return files;
  }

  TemporaryFolder folder_;
  TlsAuthority authority_{folder_.path(), "ca"};
  TlsAuthority other_{folder_.path(), "other"};
};

TEST_F(Tls, CarriesBytesAndHidesThem) {
  Pair pair(OnlyCa(), WithoutCa(authority_.NewFiles()), "localhost");
  ASSERT_THAT(pair.Handshake(), IsOk());
  const std::string words(100'000, 'w');
  ASSERT_THAT(pair.caller->Seal(AsBytes(words)), IsOk());
  std::vector<uint8_t> sealed;
  pair.caller->Drain(sealed);
  EXPECT_EQ(std::string(sealed.begin(), sealed.end()).find("wwww"), std::string::npos);

  std::string opened(words.size() + 1, 'x');
  const MutableByteSpan into(reinterpret_cast<uint8_t*>(opened.data()), opened.size());
  pair.callee->Feed(ByteSpan(sealed).first(50'000));
  const size_t first = pair.callee->Open(into).value();
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, words.size());
  EXPECT_EQ(pair.callee->Open(into.subspan(first)).value(), 0u);
  pair.callee->Feed(ByteSpan(sealed).subspan(50'000));
  EXPECT_EQ(first + pair.callee->Open(into.subspan(first)).value(), words.size());
  EXPECT_EQ(opened.substr(0, words.size()), words);
}

TEST_F(Tls, AChangedByteEndsTheStream) {
  Pair pair(OnlyCa(), WithoutCa(authority_.NewFiles()), "127.0.0.1");
  ASSERT_THAT(pair.Handshake(), IsOk());
  ASSERT_THAT(pair.callee->Seal(AsBytes("to be changed")), IsOk());
  std::vector<uint8_t> sealed;
  pair.callee->Drain(sealed);
  sealed.back() ^= 1;
  pair.caller->Feed(sealed);
  std::vector<uint8_t> into(100);
  EXPECT_THAT(pair.caller->Open(into), HasCode(Code::kUnavailable));
}

TEST_F(Tls, RefusesCertificatesThatProveNothing) {
  const TlsFiles good = authority_.NewFiles();
  struct Case {
    const char* what;
    TlsFiles caller;
    TlsFiles callee;
    std::string name;
    std::string words;
  };
  const std::vector<Case> cases{
      {"other authority", OnlyCa(), WithoutCa(other_.NewFiles()), "localhost", "issuer"},
      {"other host", OnlyCa(), WithoutCa(good), "example.org", "ostname mismatch"},
      {"other address", OnlyCa(), WithoutCa(good), "127.0.0.2", "IP address mismatch"},
      {"expired", OnlyCa(), WithoutCa(authority_.NewFiles({.expired = true})), "localhost",
       "expired"},
      {"no certificate where one is asked for", OnlyCa(), good, "localhost",
       "did not return a certificate"},
      {"caller of another authority", {.cert_file = other_.NewFiles().cert_file,
                                       .key_file = folder_.File("other-2.key"),
                                       .ca_file = authority_.ca_file()},
       good, "localhost", "issuer"},
  };
  for (const Case& bad : cases) {
    Pair pair(bad.caller, bad.callee, bad.name);
    const Status status = pair.Handshake();
    EXPECT_THAT(status, HasCode(Code::kInvalid)) << bad.what;
    EXPECT_THAT(status.message(), HasSubstr(bad.words)) << bad.what;
  }
  EXPECT_THAT(Pair(good, authority_.NewFiles(), "localhost").Handshake(), IsOk());
}

TEST_F(Tls, WhoDoesNotSpeakItIsTold) {
  const auto callee = Load(authority_.NewFiles())->NewSession(TlsRole::kCallee, "");
  callee->Feed(AsBytes("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(callee->Handshake(), HasCode(Code::kInvalid));
  EXPECT_FALSE(callee->established());
}

TEST_F(Tls, BrokenFilesAreNamed) {
  const TlsFiles good = authority_.NewFiles();
  const std::string rubbish = folder_.File("rubbish.pem");
  std::ofstream(rubbish) << "-----BEGIN CERTIFICATE-----\nrubbish\n";
  const auto refused = [](const TlsFiles& files, const std::string& words) {
    const auto context = TlsContext::Load(files);
    EXPECT_THAT(context, HasCode(Code::kInvalid)) << words;
    EXPECT_THAT(context.status().message(), HasSubstr(words));
  };
  refused({.ca_file = rubbish}, rubbish);
  refused({.ca_file = folder_.File("absent.pem")}, "absent.pem");
  refused({.cert_file = rubbish, .key_file = good.key_file}, rubbish);
  refused({.cert_file = good.cert_file, .key_file = authority_.NewFiles().key_file}, "not the key");
  refused({.cert_file = good.cert_file}, "go together");
}

TEST_F(Tls, FilesThatAreReplacedAreUsedWithoutARestart) {
  TlsFiles files = authority_.NewFiles();
  files.ca_file = folder_.File("own.pem");
  std::filesystem::copy_file(authority_.ca_file(), files.ca_file);
  const auto renewed = RenewedTls::Load(files).value();
  const TlsFiles unused = authority_.NewFiles();
  // What a caller that trusts `authority` alone makes of a session from now on.
  const auto handshake_with = [&](const TlsAuthority& authority) {
    Pair pair({.ca_file = authority.ca_file()}, unused, "localhost");
    pair.callee = renewed->NewSession(TlsRole::kCallee, "");
    return pair.Handshake();
  };
  std::filesystem::remove(files.ca_file);
  EXPECT_THAT(renewed->Refresh(), HasCode(Code::kInvalid));  // Callers' authorities are not there.
  EXPECT_FALSE(renewed->Refresh().value());                  // Said once.
  EXPECT_THAT(handshake_with(other_).message(), HasSubstr("certificate is refused"));

  const TlsFiles next = other_.NewFiles();
  std::filesystem::rename(next.cert_file, files.cert_file);
  EXPECT_THAT(renewed->Refresh(), HasCode(Code::kInvalid));
  std::filesystem::rename(next.key_file, files.key_file);
  std::filesystem::copy_file(other_.ca_file(), files.ca_file);
  EXPECT_TRUE(renewed->Refresh().value());
  EXPECT_FALSE(renewed->Refresh().value());
  // It asks for a certificate of the other authority, and shows one.
  EXPECT_THAT(handshake_with(other_).message(), HasSubstr("did not return a certificate"));
  EXPECT_GT(renewed->ends_at()->value, 0);
}

TEST_F(Tls, TheFirstEndOfAChainCounts) {
  EXPECT_EQ(Load(OnlyCa())->ends_at(), std::nullopt);
  const TlsFiles good = authority_.NewFiles();
  const UnixMillis end = Load(good)->ends_at().value();
  const TlsFiles ended = authority_.NewFiles({.expired = true});
  std::ofstream(good.cert_file, std::ios::app) << std::ifstream(ended.cert_file).rdbuf();
  EXPECT_LT(Load(good)->ends_at().value(), end);
}

class TlsNetwork : public OsTest {
 protected:
  std::unique_ptr<TcpNetwork> NewNode(uint32_t id, std::shared_ptr<const TlsContext> tls) {
    const TcpNetworkOptions options{.self = {id},
                                    .listen = "127.0.0.1:0",
                                    .cluster = "test",
                                    .tls = std::move(tls),
                                    .connect_timeout = Seconds(20)};
    return TcpNetwork::Create(*poller_, *clock_, log_, options).value();
  }
  Status CallBetween(std::shared_ptr<const TlsContext> of_caller,
                     std::shared_ptr<const TlsContext> of_callee) {
    const auto caller = NewNode(1, std::move(of_caller));
    const auto callee = NewNode(2, std::move(of_callee));
    callee->Serve([](NodeId, Bytes body, Bytes payload) -> Task<Network::Reply> {
      co_return Network::Reply(std::move(body), std::move(payload));
    });
    EXPECT_THAT(caller->SetPeer({2}, "127.0.0.1:" + std::to_string(callee->port())), IsOk());
    Network::Outgoing request(Bytes::CopyOf(AsBytes("hello")));
    const auto answer = poller_->Await(
        caller->Call({2}, std::move(request), {}, clock_->Now() + Seconds(20)));
    poller_->Await(caller->Stop());
    poller_->Await(callee->Stop());
    return answer.status();
  }

  TemporaryFolder folder_;
  TlsAuthority authority_{folder_.path(), "ca"};
  TlsAuthority other_{folder_.path(), "other"};
};

TEST_P(TlsNetwork, NodesOfOneAuthorityReachEachOtherAndNobodyElseDoes) {
  const auto ours = Load(authority_.NewFiles());
  EXPECT_THAT(CallBetween(ours, Load(authority_.NewFiles())), IsOk());
  EXPECT_THAT(CallBetween(ours, Load(other_.NewFiles())), HasCode(Code::kUnavailable));
  EXPECT_TRUE(log_.Has("its certificate is refused"));
}

// Its TLS 1.3 handshake is over before the other side has looked at its certificate.
TEST_P(TlsNetwork, WhoseCertificateIsRefusedIsToldWhy) {
  const TlsFiles of_stranger = other_.NewFiles();
  const auto stranger = Load({.cert_file = of_stranger.cert_file,
                              .key_file = of_stranger.key_file,
                              .ca_file = authority_.ca_file()});
  EXPECT_THAT(CallBetween(stranger, Load(authority_.NewFiles())), HasCode(Code::kUnavailable));
  EXPECT_TRUE(log_.Has("no connection with node 2: TLS:"));
  EXPECT_TRUE(log_.Has("(from 127.0.0.1)"));
}

TEST_P(TlsNetwork, PlainAndEncryptedDoNotMix) {
  const auto ours = Load(authority_.NewFiles());
  EXPECT_THAT(CallBetween(nullptr, ours), HasCode(Code::kUnavailable));
  EXPECT_TRUE(log_.Has("no TLS 1.3 session"));
  EXPECT_THAT(CallBetween(ours, nullptr), HasCode(Code::kUnavailable));
  EXPECT_TRUE(log_.Has("does the other side speak TLS?"));
  EXPECT_TRUE(log_.Has("a node: it speaks TLS, and this node has no certificate"));
}

KV_ON_BOTH_ENGINES(TlsNetwork);

}  // namespace
}  // namespace cairn::kv
