// Names of status codes, and how a status reads.
#include "kvstore/base/status.h"

namespace cairn::kv {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kNotFound: return "not found";
    case Code::kUnavailable: return "unavailable";
    case Code::kCorrupt: return "corrupt";
    case Code::kOverloaded: return "overloaded";
    case Code::kDeadline: return "deadline passed";
    case Code::kInvalid: return "invalid";
    case Code::kNoSpace: return "no space";
    case Code::kConflict: return "conflict";
  }
  return "unknown";
}

std::string Status::ToString() const {
  std::string text(CodeName(code_));
  if (!message_.empty()) text += ": " + message_;
  return text;
}

}  // namespace cairn::kv
