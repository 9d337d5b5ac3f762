// What probes are told from before the targets are open until after the store has stopped.
#include "kvstore/daemon/store_service.h"

#include <gmock/gmock.h>

#include "tests/support/poller_from_environment.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace cairn::kv {
namespace {

using testing::IsOk;

TEST(StoreService, IsReadyOnlyWhileItsTargetsAreOpen) {
  const testing::TemporaryFolder folder;
  NullLog log;
  StoreServiceOptions options;
  options.server.unix_path = folder.path() + "/socket";
  StoreService service(options, log);
  EXPECT_EQ(service.HealthPage().status, 200);
  EXPECT_EQ(service.ReadyPage().status, 503);
  EXPECT_EQ(service.MetricsPage().status, 503);

  EmbeddedOptions store;
  store.data_dir = folder.path() + "/data";
  store.targets = 3;
  store.target_bytes = 64 * kMiB;
  store.poller = PollerFromEnvironment();
  const auto node = EmbeddedNode::Start(store, log, &service);
  ASSERT_THAT(node, IsOk());
  EXPECT_EQ(service.HealthPage().status, 200);
  EXPECT_EQ(service.ReadyPage().status, 200);
  EXPECT_THAT(service.MetricsPage().body, ::testing::HasSubstr("cairn_target_up"));

  ASSERT_THAT(node.value()->Stop(), IsOk());
  EXPECT_EQ(service.HealthPage().status, 503);
  EXPECT_EQ(service.ReadyPage().status, 503);
}

}  // namespace
}  // namespace cairn::kv
