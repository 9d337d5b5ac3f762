// Certificates of the configuration: what is loaded, and what is said of files that cannot be.
#include "kvstore/daemon/certificates.h"

#include <gmock/gmock.h>

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

class Certificates : public ::testing::Test {
 protected:
  Certificates() {
    config_.cluster.enabled = true;
    config_.cluster.tls = authority_.NewFiles();
    config_.cluster.etcd_tls = authority_.NewFiles();
    config_.listen.tcp_tls = authority_.NewFiles();
  }

  testing::TemporaryFolder folder_;
  testing::TlsAuthority authority_{folder_.path(), "ca"};
  DaemonConfig config_;
};

TEST_F(Certificates, WithoutAnyNothingIsEncrypted) {
  const DaemonConfig none;
  EXPECT_EQ(ClientsTls(none).value(), nullptr);
  EXPECT_EQ(NodesTls(none).value(), nullptr);
  EXPECT_THAT(CheckCertificates(none), IsOk());
}

TEST_F(Certificates, GoodOnesAreLoaded) {
  EXPECT_THAT(CheckCertificates(config_), IsOk());
  EXPECT_NE(ClientsTls(config_).value(), nullptr);
  EXPECT_NE(NodesTls(config_).value(), nullptr);
}

TEST_F(Certificates, EachFileThatCannotBeUsedIsNamedWithItsSetting) {
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

TEST_F(Certificates, AllIsSaidAtOnceAndNothingOfWhatIsOff) {
  config_.cluster.tls.key_file = config_.cluster.etcd_tls.key_file;
  config_.cluster.etcd_tls.ca_file = folder_.File("absent.pem");
  EXPECT_THAT(CheckCertificates(config_).message(),
              AllOf(HasSubstr("cluster.tls_cert_file"), HasSubstr("\ncluster.etcd_cert_file")));
  EXPECT_THAT(NodesTls(config_), HasCode(Code::kInvalid));
  config_.cluster.enabled = false;
  EXPECT_THAT(CheckCertificates(config_), IsOk());
  EXPECT_EQ(NodesTls(config_).value(), nullptr);
}

}  // namespace
}  // namespace cairn::kv
