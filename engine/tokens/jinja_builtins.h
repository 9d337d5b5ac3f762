// The filters, tests, methods and functions of the template language.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/tokens/jinja_value.h"
#include "kvstore/base/result.h"

namespace cairn::engine::jinja {

// No text and no list gets larger: far more than a prompt, far less than the memory.
inline constexpr size_t kTextBytesMax = size_t{16} << 20;
inline constexpr size_t kListItemsMax = size_t{1} << 18;

// One use of a built-in: `subject | name(arguments)`, `subject is name(arguments)`,
// `subject.name(arguments)`, or `name(arguments)`.
struct Call {
  Call(std::string_view use, uint32_t at_line) : name(use), line(at_line) {}

  std::string_view name;  // Outlives this.
  uint32_t line;
  Value subject;
  std::vector<Value> arguments;  // Those given by name are last, in the order of `names`.
  std::vector<std::string> names;

  // The argument at `index`, or by its name. Null when it was not given.
  const Value* Argument(size_t index, std::string_view parameter) const;
  // The same for a text; kInvalid when it is something else. Null when absent or none.
  kv::Result<const Text*> TextArgument(size_t index, std::string_view parameter) const;
  kv::Status Error(const std::string& what) const;
  // kInvalid unless the subject is a text.
  kv::Status NeedText() const;
};

// All give kInvalid for unknown names and for arguments that do not fit.
kv::Result<Value> ApplyFilter(const Call& call);
kv::Result<bool> ApplyTest(const Call& call);
kv::Result<Value> CallMethod(const Call& call);
kv::Result<Value> CallFunction(const Call& call);
bool IsFunction(std::string_view name);

// What a loop over `value` sees: items of a list, keys of a map, characters of a text.
kv::Result<List> Iterate(const Value& value, uint32_t line);
// value[key]; undefined where there is nothing.
kv::Result<Value> GetItem(const Value& value, const Value& key, uint32_t line);
// Python's value[start:stop:step]; the three are undefined or none where not given.
kv::Result<Value> Slice(const Value& value, const Value (&bounds)[3], uint32_t line);
kv::Result<bool> Contains(const Value& container, const Value& item, uint32_t line);

}  // namespace cairn::engine::jinja
