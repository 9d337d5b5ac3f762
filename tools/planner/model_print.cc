// One table of models, and bars from the hungriest to the thriftiest.
#include "tools/planner/model_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/planner/plot.h"
#include "tools/planner/quantity.h"
#include "tools/planner/table.h"

namespace cairn::tools {
namespace {

std::string PerToken(const kv::KvLayout& layout) {
  const double bytes = layout.BytesPerToken();
  return WithCommas(bytes, bytes == std::floor(bytes) ? 0 : 2);
}

Table ModelTable(const ModelList& list) {
  Table table({"Model", ">bytes/token", ">block bytes", ">window bytes", ">align", "source"});
  for (const auto& [layout, source] : list.models) {
    table.Add({layout.model, PerToken(layout),
               WithCommas(static_cast<double>(layout.BlockBytes(list.block_tokens)), 0),
               WithCommas(static_cast<double>(layout.WindowBytes()), 0),
               std::to_string(layout.AlignmentTokens()), source});
  }
  return table;
}

// Most first; those of equal value as they come.
std::string Chart(const std::string& title, std::vector<Bar> bars) {
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.value > b.value; });
  return BarSvg(title, bars);
}

}  // namespace

std::string ModelsText(const ModelList& list) { return ModelTable(list).ToText(); }

std::string ModelsJson(const ModelList& list) {
  nlohmann::ordered_json json = {{"block_tokens", list.block_tokens},
                                 {"models", nlohmann::ordered_json::array()}};
  for (const auto& [layout, source] : list.models) {
    json["models"].push_back({{"model", layout.model},
                              {"bytes_per_token", layout.BytesPerToken()},
                              {"block_bytes", layout.BlockBytes(list.block_tokens)},
                              {"window_bytes", layout.WindowBytes()},
                              {"alignment_tokens", layout.AlignmentTokens()},
                              {"source", source}});
  }
  // A path may be anything.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string ModelsHtml(const ModelList& list) {
  std::vector<Bar> per_token, windows;
  for (const ModelRow& row : list.models) {
    const kv::KvLayout& layout = row.layout;
    per_token.push_back({layout.model, layout.BytesPerToken(), PerToken(layout)});
    const auto window = static_cast<double>(layout.WindowBytes());
    if (window > 0) windows.push_back({layout.model, window, WithCommas(window, 0)});
  }
  std::string body = Chart("Bytes stored for each token", std::move(per_token));
  if (!windows.empty()) {
    body += Chart("Bytes of one snapshot of the windows", std::move(windows));
  }
  body += fmt::format("<p>A block is of {} tokens.</p>\n", list.block_tokens);
  return HtmlPage("KV cache of models", body + ModelTable(list).ToHtml());
}

}  // namespace cairn::tools
