// Python's string methods over texts that keep their trust.
#include "engine/tokens/jinja_strings.h"

#include <utf8proc.h>

#include "engine/tokens/unicode.h"

namespace cairn::engine::jinja {
namespace {

bool InSet(char32_t c, const Text* set) {
  if (set == nullptr) return ClassOf(c) == CharacterClass::kSpace || (c >= 0x1C && c <= 0x1F);
  const std::string& bytes = set->bytes();
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Character character = CharacterAt(bytes, at);
    if (character.value == c) return true;
    at += character.size;
  }
  return false;
}

enum class Case { kUpper, kLower };

void AppendCased(std::string_view text, size_t at, Case to, std::string& target) {
  const Utf8Character character = CharacterAt(text, at);
  if (!character.valid) {
    target += text[at];
    return;
  }
  const auto value = static_cast<utf8proc_int32_t>(character.value);
  utf8proc_uint8_t buffer[4];
  const auto size = utf8proc_encode_char(
      to == Case::kUpper ? utf8proc_toupper(value) : utf8proc_tolower(value), buffer);
  target.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(size));
}

Text MapCase(const Text& text, Case to) {
  return text.MapStretches([to](std::string_view stretch) {
    std::string result;
    for (size_t at = 0; at < stretch.size(); at += CharacterAt(stretch, at).size) {
      AppendCased(stretch, at, to, result);
    }
    return result;
  });
}

// The end of the run of spaces, or of anything else, that begins at `at`.
size_t RunEnd(std::string_view text, size_t at, bool spaces) {
  while (at < text.size()) {
    const Utf8Character character = CharacterAt(text, at);
    if (InSet(character.value, nullptr) != spaces) break;
    at += character.size;
  }
  return at;
}

List SplitAtSpaces(const Text& text, int64_t splits) {
  List parts;
  const std::string& bytes = text.bytes();
  size_t at = RunEnd(bytes, 0, true);
  while (at < bytes.size()) {
    if (splits >= 0 && static_cast<int64_t>(parts.size()) == splits) {
      parts.push_back(Value::Of(Strip(text.Slice(at, bytes.size()), Side::kRight, nullptr)));
      break;
    }
    const size_t end = RunEnd(bytes, at, false);
    parts.push_back(Value::Of(text.Slice(at, end)));
    at = RunEnd(bytes, end, true);
  }
  return parts;
}

}  // namespace

Text Strip(const Text& text, Side side, const Text* set) {
  const std::vector<size_t> offsets = CharacterOffsets(text);
  size_t begin = 0;
  size_t end = offsets.size() - 1;
  const auto strips = [&](size_t i) {
    return InSet(CharacterAt(text.bytes(), offsets[i]).value, set);
  };
  if (side != Side::kRight) {
    while (begin < end && strips(begin)) ++begin;
  }
  if (side != Side::kLeft) {
    while (end > begin && strips(end - 1)) --end;
  }
  return text.Slice(offsets[begin], offsets[end]);
}

List Split(const Text& text, const Text* separator, int64_t splits) {
  if (separator == nullptr) return SplitAtSpaces(text, splits);
  List parts;
  size_t at = 0;
  while (splits < 0 || static_cast<int64_t>(parts.size()) < splits) {
    const size_t found = text.bytes().find(separator->bytes(), at);
    if (found == std::string::npos) break;
    parts.push_back(Value::Of(text.Slice(at, found)));
    at = found + separator->size();
  }
  parts.push_back(Value::Of(text.Slice(at, text.size())));
  return parts;
}

List SplitLines(const Text& text) {
  List lines;
  const std::string& bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find_first_of("\r\n", at), bytes.size());
    lines.push_back(Value::Of(text.Slice(at, end)));
    at = end + (bytes.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}

Text Replace(const Text& text, std::string_view from, const Text& to, int64_t count) {
  Text result;
  size_t at = 0;
  for (int64_t i = 0; count < 0 || i < count; ++i) {
    const size_t found = text.bytes().find(from, at);
    if (found == std::string::npos) break;
    result.Append(text.Slice(at, found));
    result.Append(to);
    at = found + from.size();
  }
  result.Append(text.Slice(at, text.size()));
  return result;
}

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

Text Upper(const Text& text) { return MapCase(text, Case::kUpper); }
Text Lower(const Text& text) { return MapCase(text, Case::kLower); }

Text Capitalize(const Text& text) {
  if (text.empty()) return text;
  const size_t first = CharacterAt(text.bytes(), 0).size;
  Text result = Upper(text.Slice(0, first));
  result.Append(Lower(text.Slice(first, text.size())));
  return result;
}

Text Title(const Text& text) {
  Text result;
  const std::string& bytes = text.bytes();
  size_t at = 0;
  while (at < bytes.size()) {
    size_t end = at;
    const bool letters = ClassOf(CharacterAt(bytes, at).value) == CharacterClass::kLetter;
    while (end < bytes.size() &&
           (ClassOf(CharacterAt(bytes, end).value) == CharacterClass::kLetter) == letters) {
      end += CharacterAt(bytes, end).size;
    }
    result.Append(letters ? Capitalize(text.Slice(at, end)) : text.Slice(at, end));
    at = end;
  }
  return result;
}

std::vector<size_t> CharacterOffsets(const Text& text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); at += CharacterAt(text.bytes(), at).size) {
    offsets.push_back(at);
  }
  offsets.push_back(text.size());
  return offsets;
}

}  // namespace cairn::engine::jinja
