// Lines of a text file, plain or gzip, with memory bounded by the longest line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"

namespace cairn::tools {

class LineReader {
 public:
  static constexpr size_t kLineBytesMax = 64 << 20;

  // gzip is recognised by its content, not by the name. "-" reads standard input.
  static kv::Result<LineReader> Open(const std::string& path);

  enum class Outcome { kLine, kTooLong, kEnd };
  // The next line without its end. `line` is valid until the next call. kCorrupt: the file cannot
  // be read on (a torn gzip stream, for instance). kTooLong skips a line over kLineBytesMax.
  kv::Result<Outcome> Next(std::string_view& line);
  // Of the line returned last, from 1.
  uint64_t line_number() const { return line_number_; }

 private:
  struct Closer {
    void operator()(void* file) const;
  };
  explicit LineReader(std::string path, void* file);
  kv::Status Fill();

  std::string path_;
  std::unique_ptr<void, Closer> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  std::string line_;
  uint64_t line_number_ = 0;
};

}  // namespace cairn::tools
