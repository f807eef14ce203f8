#include "shard/backend/transformers/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "common/status.h"

namespace penstock::shard::transformers {
namespace {

using ::testing::HasSubstr;

class FrameTest : public ::testing::Test {
 protected:
  FrameTest() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~FrameTest() override {
    CloseWriter();
    ::close(ends_[1]);
  }
  void CloseWriter() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }
  void SendRaw(std::string_view bytes) {
    EXPECT_EQ(::send(ends_[0], bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  int writer() const { return ends_[0]; }
  int reader() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{};
};

TEST_F(FrameTest, AFrameArrivesAsItWasSent) {
  // More than the socket holds, so both sides go on in parts.
  const std::string body(3 << 20, 'x');
  std::thread writes([&] {
    const boost::json::object header{{"call", "logits"}, {"count", 3}};
    EXPECT_TRUE(WriteFrame(writer(), header, std::as_bytes(std::span(body))).ok());
    EXPECT_TRUE(WriteFrame(writer(), {}).ok());
  });
  const auto first = ReadFrame(reader(), body.size());
  const auto second = ReadFrame(reader(), 0);
  writes.join();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->header.at("call").as_string(), "logits");
  EXPECT_EQ(first->header.at("count").as_int64(), 3);
  EXPECT_EQ(first->body, body);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->header.empty());
  EXPECT_TRUE(second->body.empty());
}

TEST_F(FrameTest, AClosedEndIsUnavailable) {
  SendRaw(std::string("\x02\0\0\0\0\0\0\0\0\0\0\0{", 13));  // the header lacks a byte
  CloseWriter();
  EXPECT_TRUE(absl::IsUnavailable(ReadFrame(reader(), 0).status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadFrame(reader(), 0).status()));
}

TEST_F(FrameTest, WritingToAClosedEndIsUnavailableAndNoSignal) {
  ::shutdown(reader(), SHUT_RDWR);
  EXPECT_TRUE(absl::IsUnavailable(WriteFrame(writer(), {{"call", "load"}})));
}

TEST_F(FrameTest, ALargerBodyThanExpectedIsRefused) {
  ASSERT_TRUE(WriteFrame(writer(), {}, std::as_bytes(std::span("12345"))).ok());
  const auto frame = ReadFrame(reader(), 5);
  EXPECT_TRUE(absl::IsInternal(frame.status()));
  EXPECT_THAT(Message(frame.status()), HasSubstr("a body of 6 bytes; at most 5"));
}

TEST_F(FrameTest, AHeaderThatIsNoObjectIsRefused) {
  SendRaw(std::string("\x02\0\0\0\0\0\0\0\0\0\0\0[]", 14));
  EXPECT_TRUE(absl::IsInternal(ReadFrame(reader(), 0).status()));
  SendRaw(std::string("\x02\0\0\0\0\0\0\0\0\0\0\0{x", 14));
  EXPECT_TRUE(absl::IsInternal(ReadFrame(reader(), 0).status()));
}

}  // namespace
}  // namespace penstock::shard::transformers
