// The outcome of an operation: a code that says what the caller should do, and words for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cairn::kv {

// A closed list. Each code names the caller's next step, not the place where it went wrong.
enum class Code : uint8_t {
  kOk,
  kNotFound,     // Compute the block instead: an ordinary miss.
  kUnavailable,  // Try another shard, target or node.
  kCorrupt,      // Treat as missing, and repair.
  kOverloaded,   // Back off: a queue is full.
  kDeadline,     // Give up: the caller no longer waits.
  kInvalid,      // Fix the request.
  kNoSpace,      // Free space, or write less.
  kConflict,     // Somebody else holds it, or it is of another version: a person must decide.
};

// The code as it appears in logs and in answers to people: "not found", "corrupt", ...
std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(Code code) : code_(code) {}
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // "corrupt: record 7 of segment 3 fails its checksum". Never empty.
  std::string ToString() const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

}  // namespace cairn::kv
