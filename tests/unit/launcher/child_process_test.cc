#include "launcher/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/status.h"

namespace penstock::launcher {
namespace {

using ::testing::HasSubstr;

constexpr int kDeadlineMs = 20'000;

ChildSpec Shell(const std::string& script) {
  return {.name = "child",
          .rank = {},
          .program = "/bin/sh",
          .arguments = {"-c", script},
          .environment = {"EXTRA=value"}};
}

bool WaitReadable(int fd) {
  pollfd item = {fd, POLLIN, 0};
  return ::poll(&item, 1, kDeadlineMs) == 1;
}

// Reads until the other end is closed.
std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  while (WaitReadable(fd)) {
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size <= 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

ExitStatus WaitExit(ChildProcess& child) {
  EXPECT_TRUE(WaitReadable(child.pidfd()));
  const std::optional<ExitStatus> exit = child.Reap();
  EXPECT_TRUE(exit.has_value());
  return exit.value_or(ExitStatus{});
}

TEST(ChildProcessTest, OutputErrorsAndNoticesArrive) {
  auto child = ChildProcess::Spawn(
      Shell("echo out; echo err >&2; echo $EXTRA; echo READY x >&$PENSTOCK_NOTIFY_FD; cat"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(ReadAll(child->output()), "out\nerr\nvalue\n");
  EXPECT_EQ(ReadAll(child->notices()), "READY x\n");
  const ExitStatus exit = WaitExit(*child);
  EXPECT_FALSE(exit.by_signal);
  EXPECT_EQ(exit.code, 0);
}

TEST(ChildProcessTest, SaysHowItEnded) {
  auto child = ChildProcess::Spawn(Shell("exit 3"));
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(WaitExit(*child).Describe(), "exited with status 3");
  auto killed = ChildProcess::Spawn(Shell("kill -9 $$"));
  ASSERT_TRUE(killed.ok());
  EXPECT_EQ(WaitExit(*killed).Describe(), "was killed by signal 9 (SIGKILL)");
}

TEST(ChildProcessTest, AProgramThatCannotStartIsAnErrorHere) {
  ChildSpec spec = Shell("");
  spec.program = "/nowhere/program";
  EXPECT_EQ(Message(ChildProcess::Spawn(spec).status()),
            "cannot start /nowhere/program: No such file or directory");
  spec.program = "/tmp";
  EXPECT_THAT(Message(ChildProcess::Spawn(spec).status()), HasSubstr("Permission denied"));
}

TEST(ChildProcessTest, StartsWithDefaultSignalsInItsOwnGroup) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  auto child = ChildProcess::Spawn(Shell("echo started; exec sleep 1000"));
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(WaitReadable(child->output()));
  EXPECT_EQ(::getpgid(child->pid()), child->pid());
  child->Signal(SIGTERM);
  EXPECT_EQ(WaitExit(*child).Describe(), "was killed by signal 15 (SIGTERM)");
}

TEST(ChildProcessTest, WhatAChildLeavesRunningEndsWithIt) {
  auto child = ChildProcess::Spawn(Shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(WaitReadable(child->pidfd()));
  char buffer[64] = {};
  ASSERT_GT(::read(child->output(), buffer, sizeof buffer - 1), 0);
  const int orphan = static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(buffer), 0));
  ASSERT_GE(orphan, 0);
  ASSERT_TRUE(child->Reap().has_value());
  EXPECT_TRUE(WaitReadable(orphan));
  ::close(orphan);
}

TEST(ChildProcessTest, DropsAreKilled) {
  int pidfd = -1;
  {
    auto child = ChildProcess::Spawn(Shell("exec sleep 1000"));
    ASSERT_TRUE(child.ok());
    pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child->pid(), 0));
  }
  EXPECT_TRUE(WaitReadable(pidfd));
  ::close(pidfd);
}

// A small launcher starts a child and is killed. The child must end too.
TEST(ChildProcessTest, DiesWithTheLauncherHoweverThatDies) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    auto child = ChildProcess::Spawn(Shell("exec sleep 1000"));
    const pid_t pid = child.ok() ? child->pid() : -1;
    (void)!::write(fds[1], &pid, sizeof pid);
    ::pause();
  }
  pid_t child = -1;
  ASSERT_EQ(::read(fds[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_GT(child, 0);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  ASSERT_GE(pidfd, 0);
  ::kill(launcher, SIGKILL);
  EXPECT_TRUE(WaitReadable(pidfd));
  ::waitpid(launcher, nullptr, 0);
  for (int fd : {pidfd, fds[0], fds[1]}) ::close(fd);
}

}  // namespace
}  // namespace penstock::launcher
