// Numbers as text, and back.
#include "kvstore/config/field_rows.h"

#include "kvstore/config/quantity.h"

namespace cairn::kv {

Status Bad(std::string message) { return Status(Code::kInvalid, std::move(message)); }

std::string Quoted(std::string_view text) {
  return std::string("'").append(text).append("'");
}

std::string FormatNumber(FieldKind kind, int64_t value) {
  if (kind == FieldKind::kBytes) return FormatBytes(static_cast<uint64_t>(value));
  if (kind == FieldKind::kDuration) return FormatDuration({value});
  return std::to_string(value);
}

namespace {

Result<int64_t> ParseNumber(FieldKind kind, std::string_view text) {
  if (kind == FieldKind::kBytes) {
    KV_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
    return static_cast<int64_t>(bytes);
  }
  if (kind == FieldKind::kDuration) {
    KV_ASSIGN_OR_RETURN(const Nanos span, ParseDuration(text));
    return span.value;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Bad(Quoted(text).append(" is not a whole number"));
  }
  return value;
}

}  // namespace

Result<int64_t> ParseInRange(const ConfigField& field, std::string_view text) {
  KV_ASSIGN_OR_RETURN(const int64_t value, ParseNumber(field.kind, text));
  if (value < field.min || value > field.max) {
    return Bad(Quoted(text)
                   .append(" is out of range: write ")
                   .append(FormatNumber(field.kind, field.min))
                   .append(" to ")
                   .append(FormatNumber(field.kind, field.max)));
  }
  return value;
}

}  // namespace cairn::kv
