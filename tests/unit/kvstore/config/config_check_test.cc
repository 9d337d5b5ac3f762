// Relations between settings: each broken alone, and the message that says what to do.
#include "kvstore/config/config_check.h"

#include <gmock/gmock.h>

#include <functional>

namespace cairn::kv {
namespace {

using testing::HasSubstr;

TEST(CheckConfig, TheDefaultsAreSound) {
  EXPECT_TRUE(CheckConfig(DaemonConfig(), {.memory_bytes = 8 * kGiB}).ok());
  EXPECT_THAT(ConfigWarnings(DaemonConfig()), testing::IsEmpty());
}

struct Broken {
  const char* message;
  std::function<void(DaemonConfig&)> breaks;
};

std::vector<Broken> Table() {
  return {
      {"store.data_dir: is empty", [](DaemonConfig& c) { c.node.data_dir = ""; }},
      {"store.target_size:", [](DaemonConfig& c) { c.node.target_bytes += 1; }},
      {"name a shorter path", [](DaemonConfig& c) { c.node.data_dir = std::string(120, '/'); }},
      {"nobody could come in", [](DaemonConfig& c) { c.listen.unix_socket = ""; }},
      {"listen.tcp: '7411' is no address", [](DaemonConfig& c) { c.listen.tcp = "7411"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = "127.0.0.1:"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = "127.0.0.1:65536"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = "127.0.0.1:x"; }},
      {"is no address", [](DaemonConfig& c) { c.listen.tcp = ":1"; }},
      {"tcp_beyond_loopback = true", [](DaemonConfig& c) { c.listen.tcp = "0.0.0.0:7411"; }},
      {"tcp_beyond_loopback = true", [](DaemonConfig& c) { c.listen.tcp = "[::]:7411"; }},
      {"listen.metrics: 0.0.0.0 is not loopback",
       [](DaemonConfig& c) { c.listen.metrics = "0.0.0.0:9511"; }},
      {"listen.metrics: 'localhost' is no address",
       [](DaemonConfig& c) { c.listen.metrics = "localhost"; }},
      {"same address", [](DaemonConfig& c) { c.listen.tcp = c.listen.metrics; }},
      {"memory.rebuild_buffer:",
       [](DaemonConfig& c) { c.node.node.store.reader.rebuild_bytes_max = kMiB; }},
      {"sessions.bytes_max:", [](DaemonConfig& c) { c.server.session_bytes_max = kGiB; }},
      {"listen.admin_token_file:",
       [](DaemonConfig& c) { c.listen.admin_token_file = "/etc/cairn/token"; }},
      {"keep them below 80 %",
       [](DaemonConfig& c) { c.node.node.store.index_cache_bytes = 7 * kGiB; }},
      {"upkeep.checkpoint_interval:",
       [](DaemonConfig& c) { c.node.node.checkpoint_interval = Millis(100); }},
      {"upkeep.orphan_age:", [](DaemonConfig& c) { c.node.node.orphan_age = Seconds(2); }},
  };
}

TEST(CheckConfig, EachRelationIsChecked) {
  for (const Broken& broken : Table()) {
    DaemonConfig config;
    broken.breaks(config);
    const Status status = CheckConfig(config, {.memory_bytes = 8 * kGiB});
    EXPECT_EQ(status.code(), Code::kInvalid) << broken.message;
    EXPECT_THAT(status.message(), HasSubstr(broken.message));
  }
}

TEST(CheckConfig, SaysAllAtOnce) {
  DaemonConfig config;
  config.node.target_bytes += 1;
  config.node.node.orphan_age = Seconds(2);
  const Status status = CheckConfig(config);
  EXPECT_THAT(status.message(), HasSubstr("store.target_size"));
  EXPECT_THAT(status.message(), HasSubstr("\nupkeep.orphan_age"));
}

TEST(CheckConfig, AllowsWhatIsMeant) {
  DaemonConfig config;
  config.listen.tcp = "0.0.0.0:7411";
  config.listen.tcp_beyond_loopback = true;
  config.listen.metrics = "[::1]:9511";
  EXPECT_TRUE(CheckConfig(config).ok());
  config.listen.metrics = "";
  config.listen.unix_socket = "";
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(ConfigWarnings, FewTargets) {
  DaemonConfig config;
  config.node.targets = 2;
  config.node.node.reclaim.move_percent_max = 0;
  EXPECT_THAT(ConfigWarnings(config),
              testing::ElementsAre(HasSubstr("10+2"), HasSubstr("3 copies"), HasSubstr("evicts")));
}

}  // namespace
}  // namespace cairn::kv
