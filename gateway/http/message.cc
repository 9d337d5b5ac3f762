// Serialises responses, and finds headers.
#include "gateway/http/message.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "kvstore/base/check.h"

namespace cairn::gateway {
namespace {

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, LowerAscii, LowerAscii);
}

void AppendHeader(std::string& wire, std::string_view name, std::string_view value) {
  KV_CHECK(IsHeaderSafe(name));
  KV_CHECK(IsHeaderSafe(value));
  wire.append(name).append(": ").append(value).append("\r\n");
}

std::string HeadWithoutEnd(const Response& response, Persistence persistence) {
  std::string wire = "HTTP/1.1 " + std::to_string(response.status) + " ";
  wire.append(ReasonPhrase(response.status)).append("\r\n");
  if (!response.content_type.empty()) AppendHeader(wire, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) AppendHeader(wire, name, value);
  AppendHeader(wire, "Connection", persistence == Persistence::kKeepAlive ? "keep-alive" : "close");
  return wire;
}

}  // namespace

const std::string* Request::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (EqualIgnoringCase(key, name)) return &value;
  }
  return nullptr;
}

std::string SerializeResponse(const Response& response, Persistence persistence, BodyPart body) {
  std::string wire = HeadWithoutEnd(response, persistence);
  AppendHeader(wire, "Content-Length", std::to_string(response.body.size()));
  wire += "\r\n";
  if (body == BodyPart::kSent) wire += response.body;
  return wire;
}

std::string SerializeStreamHead(const Response& head, Persistence persistence, Framing framing) {
  std::string wire = HeadWithoutEnd(head, persistence);
  if (framing == Framing::kChunked) AppendHeader(wire, "Transfer-Encoding", "chunked");
  wire += "\r\n";
  return wire;
}

void AppendPiece(std::string& wire, std::string_view bytes, Framing framing) {
  KV_CHECK(!bytes.empty());
  if (framing == Framing::kUntilClose) {
    wire.append(bytes);
    return;
  }
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bytes.size(), 16);
  wire.append(digits.data(), end.ptr).append("\r\n").append(bytes).append("\r\n");
}

void AppendLastPiece(std::string& wire, Framing framing) {
  if (framing == Framing::kChunked) wire.append("0\r\n\r\n");
}

bool IsHeaderSafe(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

}  // namespace cairn::gateway
