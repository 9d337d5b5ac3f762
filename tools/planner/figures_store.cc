// The figures of traffic, blocks, capacity, servers and wear.
#include <algorithm>
#include <cmath>

#include "tools/planner/loads.h"

namespace cairn::tools {
namespace {

constexpr double kDay = 86400;

using U = Unit;

// GPUs that one request per second keeps busy.
double PrefillPerRate(const Scenario& s) {
  return s.input_tokens * (1 - s.hit_rate) / s.prefill_rate;
}
double DecodePerRate(const Scenario& s) { return s.output_tokens / s.decode_rate; }

double ServersForReads(const Scenario& s, const Loads& l) {
  return l.read_bytes * s.peak_factor / std::min(s.server_read, s.server_nic);
}
double ServersForWrites(const Scenario& s, const Loads& l) {
  const double over_the_wire = l.write_bytes * l.stripe_overhead * s.peak_factor;
  return std::max(over_the_wire * s.write_amplification / s.server_write,
                  over_the_wire / s.server_nic);
}

}  // namespace

Loads::Loads(const Scenario& s) {
  bytes_per_token = s.KvBytesPerToken();
  hit_tokens = s.input_tokens * s.hit_rate;
  miss_tokens = s.input_tokens - hit_tokens;
  requests = s.tokens_per_day > 0 ? s.tokens_per_day / kDay / (s.input_tokens + s.output_tokens)
                                  : s.gpus / (PrefillPerRate(s) + DecodePerRate(s));
  prefill_gpus = requests * PrefillPerRate(s);
  decode_gpus = requests * DecodePerRate(s);
  gpus = prefill_gpus + decode_gpus;
  read_bytes = requests * hit_tokens * bytes_per_token;
  write_bytes = requests * (miss_tokens + s.output_tokens * s.output_write_share) * bytes_per_token;
  stripe_overhead = (s.data_shards + s.parity_shards) / s.data_shards;
  retention = s.agent_ttl * (1 - s.chat_share) + s.chat_ttl * s.chat_share;
  logical_bytes =
      s.logical_bytes_per_gpu > 0 ? s.logical_bytes_per_gpu * gpus : write_bytes * retention;
  raw_bytes = logical_bytes * stripe_overhead / s.fill;
  server_bytes = s.ssd_bytes * s.ssds_per_server;
  // A stripe lies in k + m servers, so fewer cannot be.
  servers = std::ceil(std::max({raw_bytes / server_bytes, ServersForReads(s, *this),
                                ServersForWrites(s, *this), s.data_shards + s.parity_shards}));
}

FigureGroup TrafficFigures(const Scenario& s, const Loads& l) {
  const double with_hits = s.prefill_rate / (1 - s.hit_rate);
  return {"Traffic and GPUs",
          {{"traffic.requests", "Requests per second", l.requests, U::kCount,
            "tokens a second / tokens of a request"},
           {"traffic.tokens_per_day", "Tokens a day, prompts and answers",
            l.requests * (s.input_tokens + s.output_tokens) * kDay, U::kTokens, ""},
           {"traffic.amplification", "Prefill amplification", 1 / (1 - s.hit_rate), U::kCount,
            "1 / (1 - hit rate): prompt tokens served per token computed"},
           {"gpu.prefill_rate_with_hits", "Prefill rate per GPU, hits included", with_hits,
            U::kTokensPerSecond, "computed rate x amplification"},
           {"gpu.requests", "Requests per second and prefill GPU", with_hits / s.input_tokens,
            U::kCount, ""},
           {"gpu.count", "GPUs needed at mean load", l.gpus, U::kCount,
            "prefill GPUs + decode GPUs; no head room for peaks"},
           {"gpu.prefill", "of them prefill", l.prefill_gpus, U::kCount, ""},
           {"gpu.decode", "of them decode", l.decode_gpus, U::kCount, ""},
           {"gpu.prefill_per_decode", "Prefill GPUs per decode GPU",
            PrefillPerRate(s) / std::max(DecodePerRate(s), 1e-12), U::kCount,
            "the P:D ratio at which both are busy"},
           {"gpu.sequences", "Sequences per decode GPU",
            s.decode_rate_per_user > 0 ? s.decode_rate / s.decode_rate_per_user : 0, U::kCount,
            "decode rate / rate per user"},
           {"gpu.recompute_saved", "Prefill GPUs that the store saves",
            l.prefill_gpus * s.hit_rate / (1 - s.hit_rate), U::kCount,
            "hit tokens / prefill rate: what recomputing all hits would take"}}};
}

FigureGroup BlockFigures(const Scenario& s, const Loads& l) {
  const double block =
      s.bytes_per_token > 0 || s.layout.groups.empty()
          ? s.block_tokens * l.bytes_per_token
          : static_cast<double>(s.layout.BlockBytes(static_cast<uint64_t>(s.block_tokens)));
  const double shards = std::clamp(std::floor(block / 65536), 1.0, s.data_shards);
  return {
      "KV blocks",
      {{"kv.bytes_per_token", "KV bytes per token", l.bytes_per_token, U::kBytes, ""},
       {"kv.block_bytes", "Bytes of a block", block, U::kBytes, "whole entries of each layer"},
       {"kv.blocks_per_prompt", "Blocks of a mean prompt",
        std::ceil(s.input_tokens / s.block_tokens), U::kCount, ""},
       {"kv.block_shards", "Data shards of a block stored alone", shards, U::kCount,
        "64 KiB each at least; blocks of a run share stripes"},
       {"kv.fetch_bytes", "Bytes fetched for a mean prompt", l.hit_tokens * l.bytes_per_token,
        U::kBytes, "hit tokens x bytes per token"},
       {"kv.read_per_prefill_gpu", "Fetched per prefill GPU",
        s.prefill_rate / (1 - s.hit_rate) * s.hit_rate * l.bytes_per_token, U::kBytesPerSecond, ""},
       {"kv.write_per_gpu", "Written per GPU", l.write_bytes / l.gpus, U::kBytesPerSecond,
        "computed prompt tokens and stored output tokens, all GPUs alike"}}};
}

FigureGroup StoreFigures(const Scenario& s, const Loads& l) {
  const double peak_read = l.read_bytes * s.peak_factor;
  const double write = l.write_bytes * l.stripe_overhead;
  return {
      "Store and servers",
      {{"retention.time", "Retention", l.logical_bytes / l.write_bytes, U::kSeconds,
        "logical bytes / bytes written a second, each token written once"},
       {"retention.blend", "Mean TTL of the written bytes", l.retention, U::kSeconds, ""},
       {"store.logical_per_gpu", "Logical bytes per GPU", l.logical_bytes / l.gpus, U::kBytes, ""},
       {"store.resident_tokens", "Resident tokens", l.logical_bytes / l.bytes_per_token, U::kTokens,
        ""},
       {"store.logical_bytes", "Logical bytes", l.logical_bytes, U::kBytes, ""},
       {"store.coded_bytes", "with erasure coding", l.logical_bytes * l.stripe_overhead, U::kBytes,
        "x (k + m) / k"},
       {"store.raw_bytes", "SSD bytes to buy", l.raw_bytes, U::kBytes, "coded bytes / fill"},
       {"store.servers_for_space", "Servers by space", l.raw_bytes / l.server_bytes, U::kCount, ""},
       {"store.servers_for_reads", "Servers by peak reads", ServersForReads(s, l), U::kCount,
        "peak reads / the lesser of SSDs and NIC"},
       {"store.servers_for_writes", "Servers by peak writes", ServersForWrites(s, l), U::kCount,
        ""},
       {"store.servers", "Servers", l.servers, U::kCount, "the most of these, and k + m at least"},
       {"store.ssds", "SSDs", l.servers * s.ssds_per_server, U::kCount, ""},
       {"store.read_mean", "Reads, mean", l.read_bytes, U::kBytesPerSecond, ""},
       {"store.read_peak", "Reads, peak", peak_read, U::kBytesPerSecond, "x peak factor"},
       {"store.write_mean", "Writes with parity, mean", write, U::kBytesPerSecond, ""},
       {"server.read_peak", "Reads per server, peak", peak_read / l.servers, U::kBytesPerSecond,
        ""},
       {"server.write_peak", "Writes per server, peak", write * s.peak_factor / l.servers,
        U::kBytesPerSecond, ""},
       {"server.nic_peak", "NIC use per server, peak",
        std::max(peak_read, write * s.peak_factor) / l.servers / s.server_nic, U::kShare,
        "the busier way: reads go out, writes come in"},
       {"cluster.servers", "Servers of the existing cluster", s.cluster_bytes / l.server_bytes,
        U::kCount, "its raw bytes / a server's"},
       {"cluster.raw_bytes", "Its raw bytes that this traffic fills",
        l.logical_bytes * l.stripe_overhead, U::kBytes, "coded bytes, however full"},
       {"cluster.read_limit", "What its servers can deliver",
        s.cluster_bytes / l.server_bytes * s.server_read, U::kBytesPerSecond,
        "servers x reads per server"}}};
}

FigureGroup WearFigures(const Scenario& s, const Loads& l) {
  const double flash_writes = l.write_bytes * l.stripe_overhead * s.write_amplification;
  const double dwpd = flash_writes * kDay / (l.servers * l.server_bytes);
  const double full_write = l.server_bytes / l.stripe_overhead / s.server_write;
  return {"Wear",
          {{"wear.dwpd", "Drive writes per day", dwpd, U::kCount,
            "with parity and write amplification"},
           {"wear.rated", "Drive writes per day, warranted", s.rated_dwpd, U::kCount, ""},
           {"wear.life", "Life at this rate", s.warranty * s.rated_dwpd / dwpd, U::kSeconds,
            "warranted writes / writes"},
           {"wear.retention_at_full_write", "Retention if servers wrote all the time", full_write,
            U::kSeconds, "logical bytes of a server / its write rate"},
           {"wear.dwpd_at_full_write", "Drive writes per day then",
            s.server_write * kDay / l.server_bytes, U::kCount, ""}}};
}

}  // namespace cairn::tools
