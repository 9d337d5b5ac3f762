// The folder that holds a node's targets: locked against a second process, checked for space.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::kv {

// Blocking calls, for start-up.
class DataDir {
 public:
  // Creates the folder if needed and takes its lock. kConflict: another process has it (the message
  // names the folder and the process). kInvalid: it cannot be created or written.
  static Result<std::unique_ptr<DataDir>> Open(const std::string& path);
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  // "target-03" under it.
  std::string TargetFolder(uint32_t i) const;
  static std::string TargetLabel(uint32_t i);
  const std::string& path() const { return path_; }

  // kNoSpace, with numbers, when a file system has less free than those of `targets` that are to be
  // made on it need, `bytes` each. A target's folder may be a mount of its own.
  Status CheckFree(const std::vector<uint32_t>& targets, uint64_t bytes) const;

 private:
  DataDir(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}

  const std::string path_;
  const int lock_fd_;
};

}  // namespace cairn::kv
