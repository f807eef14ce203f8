#include "router/http/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "router/http/request_id.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Wire, AnAnswerTellsItsLengthAndRequestId) {
  HttpResponse response{422, "application/json", {{"x-a", "b"}}, "{\"error\":1}"};
  const std::string head = WriteHead(response, {.request_id = "abc"});
  EXPECT_THAT(head, StartsWith("HTTP/1.1 422 Unprocessable Entity\r\n"));
  EXPECT_THAT(head, HasSubstr("content-type: application/json\r\n"));
  EXPECT_THAT(head, HasSubstr("x-a: b\r\n"));
  EXPECT_THAT(head, HasSubstr("x-request-id: abc\r\n"));
  EXPECT_THAT(head, HasSubstr("content-length: 11\r\n"));
  EXPECT_THAT(head, HasSubstr(" GMT\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("connection:")));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST(Wire, ConnectionIsNamedWhereTheDefaultDiffers) {
  EXPECT_THAT(WriteHead({}, {.keep_alive = false}), HasSubstr("connection: close\r\n"));
  EXPECT_THAT(WriteHead({}, {.http10 = true}), HasSubstr("connection: keep-alive\r\n"));
  EXPECT_THAT(WriteHead({}, {.end = BodyEnd::kClose}), HasSubstr("connection: close\r\n"));
  EXPECT_THAT(WriteHead({}, {.end = BodyEnd::kChunked}), HasSubstr("transfer-encoding: chunked"));
}

TEST(Wire, AnEmptyChunkIsNeverWrittenBecauseItWouldEndTheBody) {
  std::string out;
  AppendChunk(out, "");
  EXPECT_EQ(out, "");
  AppendChunk(out, std::string(300, 'a'));
  EXPECT_EQ(out, "12c\r\n" + std::string(300, 'a') + "\r\n");
}

TEST(RequestId, OnlyHarmlessIdsAreEchoed) {
  EXPECT_TRUE(IsRequestId("a-B_9.x:7"));
  EXPECT_TRUE(IsRequestId(std::string(128, 'a')));
  for (const char* bad : {"", "a b", "a\r\nx: y", "a\"b", "\xc3\xa4", "a/b"}) {
    EXPECT_FALSE(IsRequestId(bad)) << bad;
  }
  EXPECT_FALSE(IsRequestId(std::string(129, 'a')));
  EXPECT_NE(MakeRequestId(), MakeRequestId());
  EXPECT_TRUE(IsRequestId(MakeRequestId()));
}

}  // namespace
}  // namespace penstock::router
