// Writes JSON strings: always valid UTF-8, whatever came in.
#pragma once

#include <string>
#include <string_view>

namespace cairn::gateway {

// Appends `text` in quotes. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& json, std::string_view text);
std::string JsonString(std::string_view text);

// "line 3, column 7" of the first thing in `text` that is not JSON. Empty when all of it is.
std::string WhereNotJson(std::string_view text);

}  // namespace cairn::gateway
