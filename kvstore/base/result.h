// Either a value or the Status that explains its absence; and the four propagation macros.
#pragma once

#include <optional>
#include <utility>

#include "kvstore/base/check.h"
#include "kvstore/base/status.h"

namespace cairn::kv {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {     // NOLINT(google-explicit-constructor)
    KV_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Code code() const { return status_.code(); }

  // A check fails unless ok().
  T& value() & {
    KV_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    KV_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    KV_CHECK(ok());
    return std::move(*value_);
  }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace cairn::kv

// They only return: no logging and no wrapping inside. `lhs` may be a declaration.
#define KV_CONCAT_INNER(a, b) a##b
#define KV_CONCAT(a, b) KV_CONCAT_INNER(a, b)

#define KV_RETURN_IF_ERROR(expression)                                      \
  do {                                                                      \
    if (::cairn::kv::Status kv_status = (expression); !kv_status.ok()) {    \
      return kv_status;                                                     \
    }                                                                       \
  } while (false)

#define KV_ASSIGN_OR_RETURN_AS(result, lhs, expression) \
  auto result = (expression);                           \
  if (!result.ok()) return result.status();             \
  lhs = std::move(result).value()
#define KV_ASSIGN_OR_RETURN(lhs, expression) \
  KV_ASSIGN_OR_RETURN_AS(KV_CONCAT(kv_result_, __LINE__), lhs, expression)

#define KV_CO_RETURN_IF_ERROR(expression)                                   \
  do {                                                                      \
    if (::cairn::kv::Status kv_status = (expression); !kv_status.ok()) {    \
      co_return kv_status;                                                  \
    }                                                                       \
  } while (false)

#define KV_CO_ASSIGN_OR_RETURN_AS(result, lhs, expression) \
  auto result = (expression);                              \
  if (!result.ok()) co_return result.status();             \
  lhs = std::move(result).value()
#define KV_CO_ASSIGN_OR_RETURN(lhs, expression) \
  KV_CO_ASSIGN_OR_RETURN_AS(KV_CONCAT(kv_result_, __LINE__), lhs, expression)
