// The table of a scenario's fields, from which files, flags, help and checks are all made.
#include "tools/planner/scenario.h"

#include <fmt/format.h>

#include <array>

namespace cairn::tools {
namespace {

constexpr double kHuge = 1e18;
constexpr double kCentury = 100.0 * 365 * 86400;

using S = Scenario;
using U = Unit;
constexpr std::array kFields = {
    ScenarioField{"model.bytes_per_token", U::kBytes, &S::bytes_per_token, 0, 1e9,
                  "KV bytes per token; 0 = from the model"},
    ScenarioField{"model.block_tokens", U::kTokens, &S::block_tokens, 1, 1e6, "tokens per block"},
    ScenarioField{"traffic.tokens_per_day", U::kTokens, &S::tokens_per_day, 0, kHuge,
                  "prompt and output tokens a day; 0 = what gpu.count can serve"},
    ScenarioField{"traffic.input_tokens", U::kTokens, &S::input_tokens, 1, 1e8, "mean prompt"},
    ScenarioField{"traffic.output_tokens", U::kTokens, &S::output_tokens, 0, 1e8, "mean answer"},
    ScenarioField{"traffic.hit_rate", U::kShare, &S::hit_rate, 0, 0.9999,
                  "prompt tokens found in the store"},
    ScenarioField{"traffic.peak_factor", U::kCount, &S::peak_factor, 1, 100, "peak over mean load"},
    ScenarioField{"traffic.output_write_share", U::kShare, &S::output_write_share, 0, 1,
                  "output tokens whose KV is stored too"},
    ScenarioField{"gpu.prefill_rate", U::kTokensPerSecond, &S::prefill_rate, 1, 1e9,
                  "prompt tokens computed per second and GPU"},
    ScenarioField{"gpu.decode_rate", U::kTokensPerSecond, &S::decode_rate, 1, 1e9,
                  "output tokens per second and GPU"},
    ScenarioField{"gpu.decode_rate_per_user", U::kTokensPerSecond, &S::decode_rate_per_user, 0, 1e6,
                  "output tokens per second that one user sees"},
    ScenarioField{"gpu.count", U::kCount, &S::gpus, 0, 1e8, "GPUs; 0 = what the traffic needs"},
    ScenarioField{"gpu.per_box", U::kCount, &S::gpus_per_box, 1, 1024, "GPUs per machine"},
    ScenarioField{"gpu.box_memory", U::kBytes, &S::box_memory, 0, kHuge, "host memory per machine"},
    ScenarioField{"gpu.rent_low", U::kMoney, &S::rent_low, 0, 1e4, "dollars per GPU-hour, low"},
    ScenarioField{"gpu.rent_high", U::kMoney, &S::rent_high, 0, 1e4, "dollars per GPU-hour, high"},
    ScenarioField{"retention.agent_ttl", U::kSeconds, &S::agent_ttl, 1, kCentury, "TTL of agents"},
    ScenarioField{"retention.chat_ttl", U::kSeconds, &S::chat_ttl, 1, kCentury, "TTL of chats"},
    ScenarioField{"retention.chat_share", U::kShare, &S::chat_share, 0, 1,
                  "share of the written bytes that are chats"},
    ScenarioField{"retention.logical_bytes_per_gpu", U::kBytes, &S::logical_bytes_per_gpu, 0, kHuge,
                  "store per GPU before erasure coding; 0 = from the TTLs"},
    ScenarioField{"store.data_shards", U::kCount, &S::data_shards, 1, 64, "k"},
    ScenarioField{"store.parity_shards", U::kCount, &S::parity_shards, 0, 32, "m"},
    ScenarioField{"store.ssd_bytes", U::kBytes, &S::ssd_bytes, 1e9, 1e16, "one SSD"},
    ScenarioField{"store.ssds_per_server", U::kCount, &S::ssds_per_server, 1, 200, ""},
    ScenarioField{"store.server_read", U::kBytesPerSecond, &S::server_read, 1e6, 1e13,
                  "what a server's SSDs deliver"},
    ScenarioField{"store.server_write", U::kBytesPerSecond, &S::server_write, 1e6, 1e13, ""},
    ScenarioField{"store.server_nic", U::kBytesPerSecond, &S::server_nic, 1e6, 1e13, ""},
    ScenarioField{"store.fill", U::kShare, &S::fill, 0.05, 1, "how full SSDs may be"},
    ScenarioField{"store.write_amplification", U::kCount, &S::write_amplification, 1, 20,
                  "flash writes over first writes"},
    ScenarioField{"store.rated_dwpd", U::kCount, &S::rated_dwpd, 0.01, 100,
                  "drive writes per day that the SSD is warranted for"},
    ScenarioField{"store.warranty", U::kSeconds, &S::warranty, 86400, kCentury, ""},
    ScenarioField{"store.rebuild_share", U::kShare, &S::rebuild_share, 0.001, 1,
                  "of the servers' bandwidth, for rebuilding"},
    ScenarioField{"store.cluster_bytes", U::kBytes, &S::cluster_bytes, 0, 1e20,
                  "raw SSD bytes of an existing cluster; 0 = none"},
    ScenarioField{"window.ttl", U::kSeconds, &S::window_ttl, 0, kCentury, "of window KV in memory"},
    ScenarioField{"window.snapshots_per_request", U::kCount, &S::window_snapshots, 0, 1000, ""},
    ScenarioField{"price.hit", U::kMoney, &S::price_hit, 0, 1e6,
                  "per million cached prompt tokens"},
    ScenarioField{"price.miss", U::kMoney, &S::price_miss, 0, 1e6, "per million other ones"},
    ScenarioField{"price.output", U::kMoney, &S::price_output, 0, 1e6, "per million output tokens"},
    ScenarioField{"price.peak_factor", U::kCount, &S::price_peak_factor, 0, 100,
                  "peak over valley prices"},
    ScenarioField{"price.peak_share", U::kShare, &S::price_peak_share, 0, 1,
                  "share of the tokens sold at peak prices"},
    ScenarioField{"price.currency_per_dollar", U::kMoney, &S::currency_per_dollar, 1e-6, 1e6, ""},
    ScenarioField{"cost.ssd_dollars_per_tb", U::kMoney, &S::ssd_dollars_per_tb, 0, 1e5, ""},
    ScenarioField{"cost.server_dollars", U::kMoney, &S::server_dollars, 0, 1e7, "without SSDs"},
    ScenarioField{"cost.amortisation", U::kSeconds, &S::amortisation, 86400, kCentury, ""},
    ScenarioField{"failure.ssd_per_year", U::kPerYear, &S::ssd_failures_per_year, 1e-6, 100, ""},
    ScenarioField{"failure.server_per_year", U::kPerYear, &S::server_failures_per_year, 1e-6, 1000,
                  "outages of a server, data intact"},
    ScenarioField{"failure.server_outage", U::kSeconds, &S::server_outage, 1, kCentury,
                  "how long such an outage lasts"},
};

kv::Status Invalid(std::string message) { return {kv::Code::kInvalid, std::move(message)}; }

}  // namespace

std::span<const ScenarioField> ScenarioFields() { return kFields; }

kv::Status Validate(const Scenario& scenario) {
  for (const ScenarioField& field : kFields) {
    const double value = scenario.*field.member;
    if (value >= field.min && value <= field.max) continue;
    if (value == 0) {
      return Invalid(fmt::format("{} is missing{}{}: set it in the scenario or with --set {}=...",
                                 field.key, field.help.empty() ? "" : ", ", field.help, field.key));
    }
    return Invalid(fmt::format(
        "{} is {}: it must lie between {} and {}", field.key, FormatQuantity(value, field.unit),
        FormatQuantity(field.min, field.unit), FormatQuantity(field.max, field.unit)));
  }
  if (scenario.KvBytesPerToken() <= 0) {
    return Invalid(
        "nothing says how large KV is: set model.name, model.config or model.bytes_per_token");
  }
  if (!scenario.layout.groups.empty()) KV_RETURN_IF_ERROR(kv::Validate(scenario.layout));
  if (scenario.tokens_per_day == 0 && scenario.gpus == 0) {
    return Invalid(
        "how much traffic? Set traffic.tokens_per_day, or gpu.count to see what it serves");
  }
  for (const double shards : {scenario.data_shards, scenario.parity_shards}) {
    if (shards != static_cast<double>(static_cast<int>(shards))) {
      return Invalid(
          "store.data_shards and store.parity_shards are whole numbers, such as 10 and 2");
    }
  }
  if (scenario.rent_high < scenario.rent_low) {
    return Invalid("gpu.rent_high is below gpu.rent_low: exchange them");
  }
  return kv::Status();
}

}  // namespace cairn::tools
