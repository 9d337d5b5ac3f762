// Flags of the daemon: each setting has one, and they stand over the file.
#include "kvstore/daemon/daemon_flags.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>

#include "kvstore/config/config_fields.h"
#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;
using testing::HasCode;

class DaemonFlagsTest : public ::testing::Test {
 protected:
  DaemonFlagsTest() { ::unsetenv("CAIRN_POLLER"); }
  ~DaemonFlagsTest() override { ::unsetenv("CAIRN_POLLER"); }

  std::string File(const std::string& text) {
    const std::string path = ::testing::TempDir() + "flags-" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(DaemonFlagsTest, EverySettingHasOneFlag) {
  CLI::App app;
  DaemonFlags flags;
  AddDaemonFlags(app, flags);  // Throws when two of them are the same.
  for (const ConfigField& field : ConfigFields()) {
    EXPECT_NE(app.get_option_no_throw(FlagOf(field.key)), nullptr) << field.key;
  }
  EXPECT_EQ(FlagOf("store.data_dir"), "--data-dir");
  EXPECT_EQ(FlagOf("log.level"), "--log-level");
}

TEST_F(DaemonFlagsTest, FlagsStandOverTheFile) {
  DaemonFlags flags;
  flags.config_file = File("[store]\ntargets = 7\ntarget_size = \"2 GiB\"\n");
  flags.settings["store.targets"] = "8";
  const auto config = LoadConfig(flags);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().node.targets, 8u);
  EXPECT_EQ(config.value().node.target_bytes, 2 * kGiB);
}

TEST_F(DaemonFlagsTest, AMistakeNamesTheFlag) {
  DaemonFlags flags;
  flags.settings["log.level"] = "loud";
  const auto config = LoadConfig(flags);
  EXPECT_THAT(config, HasCode(Code::kInvalid));
  EXPECT_THAT(config.status().message(), HasSubstr("--log-level: 'loud'"));
}

TEST_F(DaemonFlagsTest, TheEnvironmentChoosesThePollerOnlyWhenNothingElseDoes) {
  ::setenv("CAIRN_POLLER", "epoll", 1);
  EXPECT_EQ(LoadConfig({}).value().node.poller.engine, PollerEngine::kEpoll);
  DaemonFlags flags;
  flags.settings["io.engine"] = "io_uring";
  EXPECT_EQ(LoadConfig(flags).value().node.poller.engine, PollerEngine::kUring);
  ::setenv("CAIRN_POLLER", "nonsense", 1);
  EXPECT_THAT(LoadConfig({}).status().message(), HasSubstr("CAIRN_POLLER: 'nonsense'"));
}

TEST_F(DaemonFlagsTest, TheAdminTokenIsTheFirstLine) {
  DaemonConfig config;
  EXPECT_EQ(WithSecrets(config).value().admin_token, "");
  config.listen.admin_token_file = File("s3cret\nrest\n");
  EXPECT_EQ(WithSecrets(config).value().admin_token, "s3cret");
  config.listen.admin_token_file = File("\n");
  EXPECT_THAT(WithSecrets(config), HasCode(Code::kInvalid));
}

}  // namespace
}  // namespace cairn::kv
