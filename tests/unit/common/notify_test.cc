#include "common/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace penstock {
namespace {

class NotifyTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0); }
  void TearDown() override { ::close(fds_[0]); }

  std::string Received() {
    char buffer[4096];
    const ssize_t size = ::recv(fds_[0], buffer, sizeof buffer, MSG_DONTWAIT);
    return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : "";
  }

  int fds_[2];
};

TEST_F(NotifyTest, LinesReadBackAsTheSameNotices) {
  Notifier notifier(fds_[1]);
  notifier.Progress("load", 5, 10, "bytes");
  const auto progress = std::get<ProgressNotice>(ParseNotice("PROGRESS load 5 10 bytes"));
  EXPECT_EQ(Received(), "PROGRESS load 5 10 bytes\n");
  EXPECT_EQ(progress.stage, "load");
  EXPECT_EQ(progress.done, 5u);
  EXPECT_EQ(progress.total, 10u);
  EXPECT_EQ(progress.unit, "bytes");
  notifier.Ready("127.0.0.1:3000");
  EXPECT_EQ(Received(), "READY 127.0.0.1:3000\n");
  EXPECT_EQ(std::get<ReadyNotice>(ParseNotice("READY 127.0.0.1:3000")).text, "127.0.0.1:3000");
}

TEST_F(NotifyTest, AMessageStaysOneLineOfBoundedLength) {
  Notifier notifier(fds_[1]);
  notifier.Failed("first\nsecond\r\n" + std::string(5000, 'x'));
  const std::string line = Received();
  EXPECT_EQ(line.size(), 1000u);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.substr(0, 20), "FAILED first second ");
}

TEST_F(NotifyTest, TakesTheDescriptorFromTheEnvironmentOnce) {
  ::setenv(kNotifyVariable, std::to_string(fds_[1]).c_str(), 1);
  Notifier notifier = Notifier::FromEnvironment();
  EXPECT_TRUE(notifier.active());
  EXPECT_EQ(std::getenv(kNotifyVariable), nullptr);
  EXPECT_FALSE(Notifier::FromEnvironment().active());
}

TEST_F(NotifyTest, ASlowLauncherLosesOnlyProgress) {
  Notifier notifier(fds_[1]);
  for (int i = 0; i < 10000; ++i) notifier.Progress("weights", 1, 10000);
  notifier.GroupLost(1, "gone");
  notifier.Ready("127.0.0.1:3000");
  std::string all;
  for (std::string part = Received(); !part.empty(); part = Received()) all += part;
  EXPECT_TRUE(all.ends_with("GROUP_LOST 1 gone\nREADY 127.0.0.1:3000\n"));
  EXPECT_TRUE(all.starts_with("PROGRESS "));
}

TEST_F(NotifyTest, AReaderThatEndedOrSleepsDoesNotBlock) {
  Notifier notifier(fds_[1]);
  for (int i = 0; i < 10000; ++i) notifier.Progress("load", 1, 2);
  ::close(fds_[0]);
  notifier.Ready();
}

TEST(ParseNoticeTest, UnknownLinesAreIgnored) {
  for (const char* line : {"", "HELLO", "PROGRESS", "PROGRESS load x 10", "ready"}) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(ParseNotice(line))) << line;
  }
}

}  // namespace
}  // namespace penstock
