// Recognises dates and times as people write them, in a few words of text.
#pragma once

#include <cstddef>
#include <string_view>

namespace cairn::tools {

// Whether the character at `at` belongs to a date or a time: 12:30:05, 10:30 AM, 2026-11-29,
// Sunday, "November 29, 2026", seconds since 1970, 2026年11月29日. Month names and numbers that
// mean nothing alone ("may", "29") count where their neighbours make a date of them.
bool IsInDateOrTime(std::string_view text, size_t at);

}  // namespace cairn::tools
