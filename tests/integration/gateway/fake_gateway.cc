// Serves a gateway over a FakeEngine until its standard input ends: something for real clients.
//
// Usage: fake_gateway [TOKEN]. The first line of output is the port.
#include <cstdio>

#include "gateway/api/gateway.h"
#include "tests/support/fake_engine.h"
#include "tests/support/steady_test_clock.h"

int main(int count, char** arguments) {
  cairn::kv::NullLog log;
  cairn::testing::SteadyTestClock clock;
  cairn::testing::FakeEngine engine;
  cairn::gateway::GatewayOptions options;
  options.server.stop_grace = cairn::kv::Millis(100);
  if (count > 1) options.bearer_token = arguments[1];
  auto gateway = cairn::gateway::Gateway::Start(options, engine, clock, log);
  if (!gateway.ok()) {
    std::fprintf(stderr, "fake_gateway: %s\n", gateway.status().ToString().c_str());
    return 1;
  }
  std::printf("%u\n", unsigned{gateway.value()->port()});
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  gateway.value()->Stop();
  return 0;
}
