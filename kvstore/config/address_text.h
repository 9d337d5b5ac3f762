// Addresses in a configuration, as text: nothing is looked up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::kv {

struct AddressText {
  std::string host;
  uint16_t port = 0;
};

// "HOST:PORT" or "[HOST]:PORT"; nothing when it is neither.
std::optional<AddressText> SplitAddress(std::string_view text);
bool IsLoopback(std::string_view host);
// Listens everywhere, and so is no address to connect to: "0.0.0.0", "::".
bool IsWildcard(std::string_view host);
// "a, b" into its parts, without the spaces around them. An empty text has none.
std::vector<std::string> SplitList(std::string_view text);

}  // namespace cairn::kv
