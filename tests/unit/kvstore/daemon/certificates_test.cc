// Certificates of the configuration: what is loaded, and what is said of files that cannot be.
#include "kvstore/daemon/certificates.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tls_authority.h"

namespace cairn::kv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::HasCode;
using testing::IsOk;

constexpr int64_t kDay = 24LL * 3600 * 1000;

struct KeptLog final : Log {
  void Write(LogLevel, std::string_view message) override { text.append(message).append("\n"); }
  std::string text;
};

class CertificatesTest : public ::testing::Test {
 protected:
  CertificatesTest() {
    config_.cluster.enabled = true;
    config_.cluster.tls = authority_.NewFiles();
    config_.cluster.etcd_tls = authority_.NewFiles();
    config_.listen.tcp_tls = authority_.NewFiles();
  }

  testing::TemporaryFolder folder_;
  testing::TlsAuthority authority_{folder_.path(), "ca"};
  DaemonConfig config_;
};

TEST_F(CertificatesTest, WithoutAnyNothingIsEncrypted) {
  const DaemonConfig none;
  const auto loaded = Certificates::Load(none).value();
  EXPECT_EQ(loaded->clients(), nullptr);
  EXPECT_EQ(loaded->nodes(), nullptr);
  EXPECT_TRUE(loaded->Ends().empty());
  EXPECT_THAT(CheckCertificates(none), IsOk());
}

TEST_F(CertificatesTest, GoodOnesAreLoaded) {
  EXPECT_THAT(CheckCertificates(config_), IsOk());
  const auto loaded = Certificates::Load(config_).value();
  EXPECT_NE(loaded->clients(), nullptr);
  EXPECT_NE(loaded->nodes(), nullptr);
  EXPECT_EQ(loaded->Ends().size(), 2u);
}

TEST_F(CertificatesTest, EachFileThatCannotBeUsedIsNamedWithItsSetting) {
  const std::string absent = folder_.File("absent.pem");
  const std::string key = authority_.NewFiles().key_file;  // Of another certificate.
  struct Case {
    std::string settings;
    std::string file;
    std::function<std::string&(DaemonConfig&)> place;
  };
  const std::vector<Case> cases{
      {"listen.tls_cert_file", absent, [](auto& c) -> auto& { return c.listen.tcp_tls.cert_file; }},
      {"listen.tls_cert_file", key, [](auto& c) -> auto& { return c.listen.tcp_tls.key_file; }},
      {"cluster.tls_cert_file", absent, [](auto& c) -> auto& { return c.cluster.tls.cert_file; }},
      {"cluster.tls_cert_file", key, [](auto& c) -> auto& { return c.cluster.tls.key_file; }},
      {"cluster.tls_cert_file", absent, [](auto& c) -> auto& { return c.cluster.tls.ca_file; }},
      {"cluster.etcd_cert_file", key, [](auto& c) -> auto& { return c.cluster.etcd_tls.key_file; }},
      {"cluster.etcd_cert_file", absent,
       [](auto& c) -> auto& { return c.cluster.etcd_tls.ca_file; }},
  };
  for (const Case& broken : cases) {
    DaemonConfig config = config_;
    broken.place(config) = broken.file;
    const Status status = CheckCertificates(config);
    EXPECT_THAT(status, HasCode(Code::kInvalid)) << broken.settings;
    EXPECT_THAT(status.message(), AllOf(StartsWith(broken.settings), HasSubstr(broken.file),
                                        HasSubstr("may read"), Not(HasSubstr("\n"))));
  }
}

TEST_F(CertificatesTest, AllIsSaidAtOnceAndNothingOfWhatIsOff) {
  config_.cluster.tls.key_file = config_.cluster.etcd_tls.key_file;
  config_.cluster.etcd_tls.ca_file = folder_.File("absent.pem");
  EXPECT_THAT(CheckCertificates(config_).message(),
              AllOf(HasSubstr("cluster.tls_cert_file"), HasSubstr("\ncluster.etcd_cert_file")));
  EXPECT_THAT(Certificates::Load(config_), HasCode(Code::kInvalid));
  config_.cluster.enabled = false;
  EXPECT_THAT(CheckCertificates(config_), IsOk());
  EXPECT_EQ(Certificates::Load(config_).value()->nodes(), nullptr);
}

TEST_F(CertificatesTest, ChangedFilesAreUsedAndWhatIsWrongWithThemIsSaidOnce) {
  const auto loaded = Certificates::Load(config_).value();
  const UnixMillis now{loaded->Ends()[0].ends_at.value - 20 * kDay};
  KeptLog log;
  loaded->Refresh(now, log);
  EXPECT_EQ(log.text, "");
  const TlsFiles next = authority_.NewFiles();
  const TlsFiles& used = config_.listen.tcp_tls;
  std::filesystem::rename(next.cert_file, used.cert_file);
  loaded->Refresh(now, log);
  EXPECT_THAT(log.text, HasSubstr("not the key of the certificate"));
  EXPECT_THAT(log.text, HasSubstr("stays in use"));
  log.text.clear();
  loaded->Refresh(now, log);
  EXPECT_EQ(log.text, "");
  std::filesystem::rename(next.key_file, used.key_file);
  loaded->Refresh(now, log);
  EXPECT_THAT(log.text, HasSubstr("the certificates for clients have changed"));
}

TEST_F(CertificatesTest, OneThatEndsSoonIsWarnedOfOnceADay) {
  const auto loaded = Certificates::Load(config_).value();
  const int64_t end = loaded->Ends()[0].ends_at.value;
  KeptLog log;
  loaded->Refresh({end - 10 * kDay}, log);
  EXPECT_THAT(log.text, HasSubstr("the certificate for clients ends in 10 days"));
  EXPECT_THAT(log.text, HasSubstr("the certificate for nodes ends in 10 days"));
  log.text.clear();
  loaded->Refresh({end - 10 * kDay + kDay / 2}, log);
  EXPECT_EQ(log.text, "");
  loaded->Refresh({end + 1}, log);
  EXPECT_THAT(log.text, HasSubstr("the certificate for clients has ended"));
}

}  // namespace
}  // namespace cairn::kv
