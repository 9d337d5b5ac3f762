// Reads plain files and gzip alike, through zlib, one buffer at a time.
#include "tools/trace/line_reader.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cairn::tools {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // Some editors begin UTF-8 with it.

}  // namespace

void LineReader::Closer::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

LineReader::LineReader(std::string path, void* file)
    : path_(std::move(path)), file_(file), buffer_(kBufferBytes) {}

kv::Result<LineReader> LineReader::Open(const std::string& path) {
  struct stat info = {};
  if (path != "-" && ::stat(path.c_str(), &info) != 0) {
    return kv::Status(kv::Code::kNotFound, "cannot open " + path + ": " + std::strerror(errno));
  }
  if (path != "-" && S_ISDIR(info.st_mode)) {
    return kv::Status(kv::Code::kInvalid, path + " is a folder: name one trace file in it");
  }
  gzFile file = path == "-" ? gzdopen(::dup(0), "rb") : gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return kv::Status(kv::Code::kNotFound, "cannot open " + path + ": " + std::strerror(errno));
  }
  gzbuffer(file, kBufferBytes);
  return LineReader(path, file);
}

kv::Status LineReader::Fill() {
  auto* file = static_cast<gzFile>(file_.get());
  const int got = gzread(file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int error = Z_OK;
  const char* message = gzerror(file, &error);
  if (got < 0 || error == Z_BUF_ERROR || error == Z_DATA_ERROR) {
    return {kv::Code::kCorrupt,
            path_ + " cannot be read after line " + std::to_string(line_number_) + ": " + message};
  }
  begin_ = 0;
  end_ = static_cast<size_t>(got);
  at_end_ = got == 0;
  return kv::Status();
}

kv::Result<LineReader::Outcome> LineReader::Next(std::string_view& line) {
  line_.clear();
  bool too_long = false;
  bool any = false;
  while (true) {
    if (begin_ == end_) {
      if (!at_end_) KV_RETURN_IF_ERROR(Fill());
      if (at_end_) break;
    }
    any = true;
    const auto first = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto last = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto stop = std::find(first, last, '\n');
    const auto length = static_cast<size_t>(stop - first);
    too_long = too_long || line_.size() + length > kLineBytesMax;
    if (!too_long) line_.append(first, stop);
    begin_ += length + (stop == last ? 0 : 1);
    if (stop != last) break;
  }
  if (!any) return Outcome::kEnd;
  ++line_number_;
  if (too_long) return Outcome::kTooLong;
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  line = line_;
  if (line_number_ == 1 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  return Outcome::kLine;
}

}  // namespace cairn::tools
