// Bytes of responses, of streams and of server-sent events.
#include "gateway/http/message.h"

#include <gtest/gtest.h>

#include "gateway/http/sse.h"

namespace cairn::gateway {
namespace {

TEST(Message, HeadersAreFoundInAnyCase) {
  const Request request{
      .method = "GET", .path = "/", .headers = {{"X-Request-ID", "7"}}, .body = ""};
  ASSERT_NE(request.Header("x-request-id"), nullptr);
  EXPECT_EQ(*request.Header("x-request-id"), "7");
  EXPECT_EQ(request.Header("x-request"), nullptr);
}

TEST(Message, ResponseTellsItsLength) {
  const Response response{
      .status = 404, .content_type = "text/plain", .headers = {{"Allow", "GET"}}, .body = "gone"};
  EXPECT_EQ(SerializeResponse(response, Persistence::kClose, BodyPart::kSent),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nAllow: GET\r\n"
            "Connection: close\r\nContent-Length: 4\r\n\r\ngone");
  EXPECT_EQ(SerializeResponse(response, Persistence::kKeepAlive, BodyPart::kOmitted),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nAllow: GET\r\n"
            "Connection: keep-alive\r\nContent-Length: 4\r\n\r\n");
}

TEST(Message, PiecesAreChunksOrPlain) {
  std::string chunked;
  AppendPiece(chunked, std::string(26, 'a'), Framing::kChunked);
  AppendLastPiece(chunked, Framing::kChunked);
  EXPECT_EQ(chunked, "1a\r\n" + std::string(26, 'a') + "\r\n0\r\n\r\n");

  std::string plain;
  AppendPiece(plain, "abc", Framing::kUntilClose);
  AppendLastPiece(plain, Framing::kUntilClose);
  EXPECT_EQ(plain, "abc");
}

TEST(Message, LineBreaksAreNotHeaderSafe) {
  EXPECT_TRUE(IsHeaderSafe("req_0123-x.y"));
  EXPECT_FALSE(IsHeaderSafe("a\r\nSet-Cookie: b"));
  EXPECT_FALSE(IsHeaderSafe(std::string_view("a\0b", 3)));
}

TEST(Sse, EveryLineOfDataBecomesADataLine) {
  EXPECT_EQ(SseEvent("{}"), "data: {}\n\n");
  EXPECT_EQ(SseEvent(""), "data: \n\n");
  EXPECT_EQ(SseEvent("a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
}

}  // namespace
}  // namespace cairn::gateway
