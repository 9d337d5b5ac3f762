// Python's string methods over texts that keep their trust.
#pragma once

#include <string_view>
#include <vector>

#include "engine/tokens/jinja_text.h"
#include "engine/tokens/jinja_value.h"

namespace cairn::engine::jinja {

enum class Side : uint8_t { kLeft = 1, kRight = 2, kBoth = 3 };

// Removes characters of `set` at the ends; white space when `set` is null.
Text Strip(const Text& text, Side side, const Text* set);
// Between white space when `separator` is null. At most `splits` cuts; all if negative.
List Split(const Text& text, const Text* separator, int64_t splits);
List SplitLines(const Text& text);
// At most `count` replacements; all if negative. `from` is not empty.
Text Replace(const Text& text, std::string_view from, const Text& to, int64_t count);
// How often `part`, which is not empty, stands in `text` without overlap.
size_t CountOf(std::string_view text, std::string_view part);
Text Upper(const Text& text);
Text Lower(const Text& text);
Text Capitalize(const Text& text);  // First character upper, the rest lower.
Text Title(const Text& text);       // The same for every word.

// The byte offset of every character, and the size at the end.
std::vector<size_t> CharacterOffsets(const Text& text);

}  // namespace cairn::engine::jinja
