// What a store needs to be used by other processes: a server, calls timed, numbers sampled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kvstore/base/log.h"
#include "kvstore/daemon/http_endpoint.h"
#include "kvstore/metrics/exposition.h"
#include "kvstore/node/embedded/embedded_node.h"
#include "kvstore/serve/server.h"

namespace cairn::kv {

class Certificates;
class EtcdCluster;

struct StoreServiceOptions {
  ServerOptions server;
  bool self_test = true;
  double rated_drive_writes_per_day = 1.0;
  // What this node is part of; null: it stands alone. Where there is one, no self-test is run:
  // whether blocks can be put depends on other nodes.
  EtcdCluster* cluster = nullptr;
  const Certificates* certificates = nullptr;  // Whose ends MetricsPage tells; null: it has none.
  Nanos sample_interval = Seconds(1);  // Of what MetricsPage tells.
};

// Give it to EmbeddedNode::Start. The pages are thread-safe, before that and until it is destroyed.
class StoreService final : public EmbeddedService {
 public:
  // `log` must outlive it.
  StoreService(StoreServiceOptions options, Log& log);
  ~StoreService() override;

  // Runs the self-test, then opens the addresses. Errors as of SelfTest and Server::Start.
  Status Start(const Parts& parts) override;
  Task<void> Stop() override;

  // The last sample, at most a little older than `sample_interval`: never waits for the store. 503
  // before the first one.
  HttpAnswer MetricsPage() const;
  // 200 while it opens its targets, and "ok" later; 503 when the store's thread has not answered
  // for ten seconds, or has stopped.
  HttpAnswer HealthPage() const;
  // As HealthPage, but 503 until the targets are open, the self-test has passed and the addresses
  // are listened on; and in a cluster, while this node is not in its map or some run has no home.
  HttpAnswer ReadyPage() const;
  // Of the server, once it has started; 0 when it does not listen there.
  uint16_t tcp_port() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace cairn::kv
