// Where the endpoint listens; what it answers is tested on the daemon.
#include "kvstore/daemon/http_endpoint.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace cairn::kv {
namespace {

using ::testing::HasSubstr;
using testing::HasCode;

HttpPages Pages() {
  return {.metrics = [] { return HttpAnswer{200, "m 1\n"}; },
          .health = [] { return HttpAnswer{503, "no\n"}; },
          .ready = [] { return HttpAnswer{200, "yes\n"}; }};
}

TEST(HttpEndpoint, TakesAnyPortAndGivesItBack) {
  NullLog log;
  uint16_t port = 0;
  {
    const auto first = HttpEndpoint::Start("127.0.0.1:0", Pages(), log);
    ASSERT_TRUE(first.ok()) << first.status().message();
    port = first.value()->port();
    ASSERT_NE(port, 0);
    const std::string same = std::string("localhost:").append(std::to_string(port));
    const auto second = HttpEndpoint::Start(same, Pages(), log);
    EXPECT_THAT(second, HasCode(Code::kConflict));
    EXPECT_THAT(second.status().message(), HasSubstr("choose another listen.metrics"));
  }
  const std::string again = std::string("127.0.0.1:").append(std::to_string(port));
  EXPECT_TRUE(HttpEndpoint::Start(again, Pages(), log).ok());
}

}  // namespace
}  // namespace cairn::kv
