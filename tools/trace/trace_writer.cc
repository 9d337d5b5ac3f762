// Appends numbers by hand: a trace may have hundreds of ids on each of a million lines.
#include "tools/trace/trace_writer.h"

#include <charconv>

namespace cairn::tools {
namespace {

template <typename T>
void Append(T number, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void AppendIds(const Request& request, std::string& out) {
  out += "\"hash_ids\": [";
  for (size_t i = 0; i < request.blocks.size(); ++i) {
    if (i > 0) out += ", ";
    Append(request.blocks[i], out);
  }
  out += ']';
}

void AppendLengths(const Request& request, std::string& out) {
  out += ", \"input_length\": ";
  Append(request.input_tokens, out);
  out += ", \"output_length\": ";
  Append(request.output_tokens, out);
  out += ", ";
}

void AppendBlockSize(uint64_t block_tokens, std::string& out) {
  out += ", \"block_size\": ";
  Append(block_tokens, out);
}

}  // namespace

std::string MooncakeLine(const Request& request, uint64_t block_tokens) {
  std::string out = "{\"timestamp\": ";
  Append(request.time_ms, out);
  AppendLengths(request, out);
  AppendIds(request, out);
  AppendBlockSize(block_tokens, out);
  if (request.session != 0) {
    out += ", \"session_id\": ";
    Append(request.session, out);
  }
  return out += "}\n";
}

std::string BailianLine(const Request& request, uint64_t block_tokens, uint64_t turn) {
  std::string out = "{\"chat_id\": ";
  Append(request.session, out);
  out += ", \"parent_chat_id\": -1, \"timestamp\": ";
  Append(request.time_ms / 1'000, out);
  out += '.';
  const int64_t millis = request.time_ms % 1'000;
  out += static_cast<char>('0' + millis / 100);
  out += static_cast<char>('0' + millis / 10 % 10);
  out += static_cast<char>('0' + millis % 10);
  AppendLengths(request, out);
  out += "\"type\": \"text\", \"turn\": ";
  Append(turn, out);
  out += ", ";
  AppendIds(request, out);
  AppendBlockSize(block_tokens, out);
  return out += "}\n";
}

}  // namespace cairn::tools
