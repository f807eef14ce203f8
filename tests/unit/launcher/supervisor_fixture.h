// A supervisor of children that are shell scripts. It records what it observes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/supervisor.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {

// A child that is ready and then waits for SIGTERM, which it reports and obeys.
inline constexpr const char* kGood =
    "trap 'echo got TERM; exit 0' TERM; echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; "
    "while :; do sleep 1000 & wait; done";
inline constexpr const char* kDeaf =
    "trap '' TERM; echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; "
    "while :; do sleep 1000 & wait; done";

class SupervisorTest : public ::testing::Test, public SupervisorObserver {
 protected:
  SupervisorTest() {
    EXPECT_EQ(::pipe(signals_), 0);
    timeouts_ = {.startup = std::chrono::seconds(60),
                 .drain = std::chrono::seconds(60),
                 .stop = std::chrono::seconds(60),
                 .failure = std::chrono::seconds(60)};
  }
  ~SupervisorTest() override {
    ::close(signals_[0]);
    ::close(signals_[1]);
  }

  static ChildSpec Shell(const std::string& name, const std::string& script) {
    return {.name = name,
            .rank = {},
            .program = "/bin/sh",
            .arguments = {"-c", script},
            .environment = {}};
  }

  Outcome Run(const std::vector<std::string>& shard_scripts, const std::string& router_script,
              int ranks_per_group = 1000) {
    std::vector<ChildSpec> shards;
    for (const std::string& script : shard_scripts) {
      const int index = static_cast<int>(shards.size());
      shards.push_back(Shell("shard-" + std::to_string(index), script));
      shards.back().rank = index % ranks_per_group;
      shards.back().group = index / ranks_per_group;
    }
    Supervisor supervisor(std::move(shards), Shell("router", router_script), timeouts_, signals_[0],
                          *this, root_.path());
    return supervisor.Run();
  }

  void Send(int signal) {
    signalfd_siginfo info = {};
    info.ssi_signo = static_cast<std::uint32_t>(signal);
    ASSERT_EQ(::write(signals_[1], &info, sizeof info), static_cast<ssize_t>(sizeof info));
  }

  void OnLine(const ChildSpec& child, std::string_view line) override {
    events_.push_back(child.name + " says " + std::string(line));
    if (line.starts_with("pid ")) pids_[child.name] = std::stoi(std::string(line.substr(4)));
    if (on_line_) on_line_(std::string(line));
  }
  void OnProgress(const ChildSpec& child, const ProgressNotice& progress) override {
    events_.push_back(child.name + " at " + progress.stage);
  }
  void OnReady(std::string_view address) override {
    events_.push_back("ready at " + std::string(address));
    if (on_ready_) on_ready_();
  }
  void OnGroup(GroupNews, std::string_view news) override {
    events_.push_back(std::string(news));
    if (on_group_) on_group_(std::string(news));
  }
  void OnStopping(std::string_view reason) override {
    events_.push_back("stopping: " + std::string(reason));
    if (on_stopping_) on_stopping_();
  }

  // Sends SIGSTOP or SIGCONT, and then SIGCHLD as the kernel does.
  void StopOrContinue(const std::string& child, int signal) {
    const auto pid = static_cast<id_t>(pids_[child]);
    ::kill(pids_[child], signal);
    siginfo_t info;
    ::waitid(P_PID, pid, &info, (signal == SIGSTOP ? WSTOPPED : WCONTINUED) | WNOWAIT);
    Send(SIGCHLD);
  }

  int signals_[2];
  const TempFolder root_;  // in place of / for the files of the kernel
  Timeouts timeouts_;
  std::vector<std::string> events_;
  std::map<std::string, pid_t> pids_;  // of children that say "pid N"
  std::function<void()> on_ready_;
  std::function<void(const std::string&)> on_group_;
  std::function<void()> on_stopping_;
  std::function<void(const std::string&)> on_line_;
};

}  // namespace penstock::launcher
