// Matchers for Status and Result<T>: IsOk() and HasCode(code).
#pragma once

#include <gmock/gmock.h>

#include "kvstore/base/result.h"

namespace cairn::testing {

inline const kv::Status& StatusOf(const kv::Status& status) { return status; }
template <typename T>
const kv::Status& StatusOf(const kv::Result<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is ok") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}
MATCHER_P(HasCode, code, std::string("has code ") + std::string(kv::CodeName(code))) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

}  // namespace cairn::testing
