// The figures of rebuild, window memory and money.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/planner/loads.h"
#include "tools/planner/reliability.h"

namespace cairn::tools {
namespace {

constexpr double kHour = 3600;
constexpr double kYear = 365 * 86400.0;
using U = Unit;

// Seconds until `lost_bytes` are rebuilt by all other servers together.
double RebuildTime(const Scenario& s, const Loads& l, double lost_bytes) {
  const double helpers = std::max(l.servers - 1, 1.0) * s.rebuild_share;
  const double write = lost_bytes / (helpers * s.server_write);
  const double read =
      lost_bytes * s.data_shards / (helpers * std::min(s.server_read, s.server_nic));
  return std::max(read, write);
}

// Of a block of full width, whose shards lie on as many servers. Above 0, for logarithms.
double UnreadableShare(const Scenario& s, double rebuild_seconds) {
  const CodeShape shape{static_cast<uint32_t>(s.data_shards),
                        static_cast<uint32_t>(s.parity_shards)};
  const Reliability reliability = Solve(shape, {.failures_per_year = s.ssd_failures_per_year,
                                                .rebuild_hours = rebuild_seconds / kHour,
                                                .outages_per_year = s.server_failures_per_year,
                                                .outage_hours = s.server_outage / kHour});
  return std::max(reliability.unavailable_share, 1e-300);
}

}  // namespace

FigureGroup RebuildFigures(const Scenario& s, const Loads& l) {
  const double ssd = s.ssd_bytes * s.fill;
  const double server = ssd * s.ssds_per_server;
  const double width = s.data_shards + s.parity_shards;
  // Of all stripes, those that lost a shard to each of two given servers.
  const double both = width * (width - 1) / (l.servers * std::max(l.servers - 1, 1.0));
  const double outages = l.servers * s.server_failures_per_year;
  return {
      "Failures and rebuild",
      {{"rebuild.ssd_bytes", "Bytes lost with an SSD", ssd, U::kBytes, "at the fill given"},
       {"rebuild.ssd_read", "Bytes read to rebuild it", ssd * s.data_shards, U::kBytes,
        "k survivors for each lost shard"},
       {"rebuild.ssd_time", "Time to rebuild an SSD", RebuildTime(s, l, ssd), U::kSeconds,
        "by all other servers, with their rebuild share"},
       {"rebuild.server_bytes", "Bytes lost with a server", server, U::kBytes, ""},
       {"rebuild.server_read", "Bytes read to rebuild it", server * s.data_shards, U::kBytes, ""},
       {"rebuild.server_time", "Time to rebuild a server", RebuildTime(s, l, server), U::kSeconds,
        ""},
       {"rebuild.degraded_share", "Stripes degraded by a lost server",
        std::min(1.0, width / l.servers), U::kShare, "(k + m) / servers"},
       {"rebuild.read_growth", "Mean reads of a degraded stripe", 1 + (s.data_shards - 1) / width,
        U::kCount, "one shard in k + m costs k reads"},
       {"rebuild.two_lost_share", "Stripes that two lost servers share", std::min(1.0, both),
        U::kShare, "(k + m)(k + m - 1) / n(n - 1)"},
       {"rebuild.two_lost_bytes", "Logical bytes of these", std::min(1.0, both) * l.logical_bytes,
        U::kBytes, "at risk when m = 2, lost when m = 1"},
       {"failure.ssds_per_year", "SSDs that fail in a year",
        l.servers * s.ssds_per_server * s.ssd_failures_per_year, U::kCount, ""},
       {"failure.server_outages_per_year", "Server outages in a year", outages, U::kCount,
        "their data come back with them"},
       {"failure.servers_out", "Servers out at a time, mean",
        std::min(l.servers, outages * s.server_outage / kYear), U::kCount,
        "outages x how long one lasts"},
       {"failure.readable_nines", "Availability of a block, nines",
        -std::log10(UnreadableShare(s, RebuildTime(s, l, ssd))), U::kCount,
        "unreadable: more than m of its shards are out or not yet rebuilt"}}};
}

FigureGroup MemoryFigures(const Scenario& s, const Loads& l) {
  const auto snapshot = static_cast<double>(s.layout.WindowBytes());
  const double per_gpu =
      snapshot * s.window_snapshots * s.window_ttl * l.requests / std::max(l.prefill_gpus, 1e-9);
  return {"Window memory",
          {{"window.snapshot_bytes", "One snapshot of all windows", snapshot, U::kBytes, ""},
           {"window.per_prefill_gpu", "Pool per prefill GPU", per_gpu, U::kBytes,
            "snapshots of the requests of one TTL"},
           {"window.per_box", "Pool per machine", per_gpu * s.gpus_per_box, U::kBytes, ""},
           {"window.share_of_memory", "Share of its memory",
            s.box_memory > 0 ? per_gpu * s.gpus_per_box / s.box_memory : 0, U::kShare, ""}}};
}

// Of what is sold, without prices nothing: shares and margins of no revenue say nothing.
void AddRevenue(const Scenario& s, const Loads& l, double valley, FigureGroup& group) {
  const double hit = l.requests * l.hit_tokens * s.price_hit;
  const double miss = l.requests * l.miss_tokens * s.price_miss;
  const double output = l.requests * s.output_tokens * s.price_output;
  const double all = hit + miss + output;
  const double blend = valley * (1 + s.price_peak_share * (s.price_peak_factor - 1));
  group.figures = {{"money.per_gpu_hour", "Revenue per GPU-hour, valley prices", valley, U::kMoney,
                    "hits, misses and output at their prices / all GPUs"},
                   {"money.hit_share", "of it cached prompt tokens", hit / all, U::kShare, ""},
                   {"money.miss_share", "of it other prompt tokens", miss / all, U::kShare, ""},
                   {"money.output_share", "of it output tokens", output / all, U::kShare, ""},
                   {"money.per_gpu_hour_peak", "Revenue per GPU-hour, peak prices",
                    valley * s.price_peak_factor, U::kMoney, ""},
                   {"money.per_gpu_hour_blend", "Revenue per GPU-hour, blended", blend, U::kMoney,
                    "by the share sold at peak prices"}};
  const std::pair<const char*, double> rents[] = {
      {"low", s.rent_low}, {"mid", (s.rent_low + s.rent_high) / 2}, {"high", s.rent_high}};
  for (const auto& [name, rent] : rents) {
    group.figures.push_back({fmt::format("money.margin_{}", name),
                             fmt::format("Margin at {:.2f} rent per GPU-hour", rent),
                             1 - rent / valley, U::kShare,
                             "(revenue - rent) / revenue, valley prices"});
  }
}

FigureGroup MoneyFigures(const Scenario& s, const Loads& l) {
  const double sold = l.hit_tokens * s.price_hit + l.miss_tokens * s.price_miss +
                      s.output_tokens * s.price_output;
  const double valley = l.requests * sold / 1e6 * kHour / l.gpus / s.currency_per_dollar;
  const double storage =
      l.servers * (s.server_dollars + l.server_bytes / 1e12 * s.ssd_dollars_per_tb);
  const double storage_hour = storage / (s.amortisation / kHour) / l.gpus;
  const double saved = l.prefill_gpus * s.hit_rate / (1 - s.hit_rate);
  FigureGroup group{"Money (dollars)", {}};
  if (valley > 0) AddRevenue(s, l, valley, group);
  group.figures.push_back(
      {"money.storage_capital", "Price of the store", storage, U::kMoney, "servers and SSDs"});
  group.figures.push_back(
      {"money.storage_per_gpu_hour", "Store per GPU-hour", storage_hour, U::kMoney, "amortised"});
  if (valley > 0) {
    group.figures.push_back(
        {"money.storage_share", "Store of revenue", storage_hour / valley, U::kShare, ""});
  }
  group.figures.push_back({"money.storage_per_tb_year", "Store per logical TB and year",
                           storage / (s.amortisation / kYear) / (l.logical_bytes / 1e12),
                           U::kMoney, ""});
  if (storage_hour > 0) {
    group.figures.push_back({"money.saved_per_storage",
                             "Rent of the GPUs saved per price of the store",
                             saved * s.rent_low / (storage_hour * l.gpus), U::kCount,
                             "at the low rent"});
  }
  return group;
}

}  // namespace cairn::tools
