// One HTTP request as handlers see it, and one response as they make it; and their bytes.
//
// Pure: no sockets here. Parsing is the connection's (Boost.Beast does it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::gateway {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method{};  // As sent: "GET", "POST", ...
  std::string path{};    // Without query and fragment; not decoded.
  Headers headers{};     // In order, as sent.
  std::string body{};

  // The first header of that name in any case of letters, or null.
  const std::string* Header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type{};
  Headers headers{};  // Further ones. No name or value may hold a line break.
  std::string body{};
};

// How the connection goes on after a response.
enum class Persistence { kKeepAlive, kClose };
// HEAD answers carry the length of a body but not the body.
enum class BodyPart { kSent, kOmitted };

// Head and body, with Content-Length.
std::string SerializeResponse(const Response& response, Persistence persistence, BodyPart body);

// How the end of a body of unknown length is told: HTTP/1.1 has chunks, 1.0 only the close.
enum class Framing { kChunked, kUntilClose };

// The head of a response whose body follows in pieces. `head.body` is not looked at.
std::string SerializeStreamHead(const Response& head, Persistence persistence, Framing framing);
// Appends one piece of the body. `bytes` is not empty: an empty chunk would end the body.
void AppendPiece(std::string& wire, std::string_view bytes, Framing framing);
void AppendLastPiece(std::string& wire, Framing framing);

// A header value that goes back to the client must not be able to split the response.
bool IsHeaderSafe(std::string_view value);

std::string_view ReasonPhrase(int status);

}  // namespace cairn::gateway
