// The assumptions of one plan: plain numbers in base units, each with a name, a unit and bounds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/layout/kv_layout.h"
#include "tools/planner/quantity.h"

namespace cairn::tools {

// A figure that somebody published, to be held against the plan's.
struct Claim {
  std::string figure;  // The id of a figure of the plan.
  std::string value;   // With its unit.
  double within = 0.01;
  std::string note;  // Where it is from; for a claim that does not add up, why it does not.
  bool adds_up = true;
};

// Zero means "derive it" where the help says so.
struct Scenario {
  std::string name = "unnamed";
  std::string model;         // A known model, or
  std::string model_config;  // the path of a Hugging Face config.json.
  std::string currency = "USD";
  kv::KvLayout layout;  // Of the model; empty when only bytes_per_token is given.
  double bytes_per_token = 0;
  double block_tokens = 256;

  double tokens_per_day = 0;
  double input_tokens = 0;
  double output_tokens = 0;
  double hit_rate = 0;
  double peak_factor = 3;
  double output_write_share = 1;

  double prefill_rate = 0;
  double decode_rate = 0;
  double decode_rate_per_user = 0;
  double gpus = 0;
  double gpus_per_box = 8;
  double box_memory = 0;
  double rent_low = 3;
  double rent_high = 7;

  double agent_ttl = 3 * 86400.0;
  double chat_ttl = 7 * 86400.0;
  double chat_share = 0.5;
  double logical_bytes_per_gpu = 0;

  double data_shards = 10;
  double parity_shards = 2;
  double ssd_bytes = 30.73e12;
  double ssds_per_server = 20;
  double server_read = 40e9;
  double server_write = 5e9;
  double server_nic = 50e9;
  double fill = 0.9;
  double write_amplification = 1.1;
  double rated_dwpd = 1;
  double warranty = 5 * 365 * 86400.0;
  double rebuild_share = 0.2;
  double cluster_bytes = 0;

  double window_ttl = 180;
  double window_snapshots = 2;

  double price_hit = 0;
  double price_miss = 0;
  double price_output = 0;
  double price_peak_factor = 2;
  double price_peak_share = 0;
  double currency_per_dollar = 1;
  double ssd_dollars_per_tb = 60;
  double server_dollars = 15'000;
  double amortisation = 5 * 365 * 86400.0;

  double ssd_failures_per_year = 0.01;
  double server_failures_per_year = 0.05;
  double server_outage = 3600;

  std::vector<Claim> claims;

  // Layouts compress along the sequence, so this is the layout's own figure where there is one.
  double KvBytesPerToken() const {
    return bytes_per_token > 0 ? bytes_per_token : layout.BytesPerToken();
  }
};

struct ScenarioField {
  std::string_view key;  // "store.ssd_bytes", as in the file and in --set.
  Unit unit;
  double Scenario::*member;
  double min;
  double max;
  std::string_view help;
};

// All numeric fields, in the order of the file.
std::span<const ScenarioField> ScenarioFields();

// Names the first field that is missing or cannot be, and what would do.
kv::Status Validate(const Scenario& scenario);

}  // namespace cairn::tools
