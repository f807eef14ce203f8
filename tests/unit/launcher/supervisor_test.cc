#include "launcher/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "common/exit_codes.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A child that is ready and then waits for SIGTERM, which it reports and obeys.
constexpr const char* kGood =
    "trap 'echo got TERM; exit 0' TERM; echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; "
    "while :; do sleep 1000 & wait; done";
constexpr const char* kDeaf =
    "trap '' TERM; echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; "
    "while :; do sleep 1000 & wait; done";

class SupervisorTest : public ::testing::Test, public SupervisorObserver {
 protected:
  SupervisorTest() {
    EXPECT_EQ(::pipe(signals_), 0);
    timeouts_ = {
        .startup = seconds(60), .drain = seconds(60), .stop = seconds(60), .failure = seconds(60)};
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
  void OnGroup(std::string_view news) override {
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

TEST_F(SupervisorTest, StartsTheRouterAfterTheShardsAndStopsItBeforeThem) {
  on_ready_ = [&] { Send(SIGTERM); };
  const std::string shard = std::string("echo shard starts; ") + kGood;
  const Outcome outcome = Run({shard, shard}, std::string("echo router starts; ") + kGood);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.error, "");
  ASSERT_EQ(events_.size(), 8u) << ::testing::PrintToString(events_);
  EXPECT_THAT(
      std::vector(events_.begin(), events_.begin() + 2),
      ::testing::UnorderedElementsAre("shard-0 says shard starts", "shard-1 says shard starts"));
  EXPECT_THAT(std::vector(events_.begin() + 2, events_.begin() + 6),
              ElementsAre("router says router starts", "ready at 127.0.0.1:1",
                          "stopping: received SIGTERM", "router says got TERM"));
  EXPECT_THAT(std::vector(events_.begin() + 6, events_.end()),
              ::testing::UnorderedElementsAre("shard-0 says got TERM", "shard-1 says got TERM"));
}

TEST_F(SupervisorTest, AKilledShardIsReportedAndTheOthersStop) {
  on_ready_ = [&] { ::kill(pids_["shard-1"], SIGKILL); };
  const Outcome outcome = Run({kGood, std::string("echo one; echo pid $$; ") + kGood}, kGood);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  const std::string pid = std::to_string(pids_["shard-1"]);
  EXPECT_EQ(outcome.error, "shard-1 (rank 1, pid " + pid + ") was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(outcome.culprit, "shard-1");
  EXPECT_THAT(outcome.last_lines, ElementsAre("one", "pid " + pid));
  EXPECT_THAT(events_, Contains("shard-0 says got TERM"));
}

TEST_F(SupervisorTest, AMissingTorchIsReportedWithTheRemedy) {
  const Outcome outcome =
      Run({"echo 'penstock-shard: error while loading shared libraries: libtorch_cpu.so: cannot "
           "open shared object file'; exit 127"},
          kGood);
  EXPECT_THAT(outcome.error, HasSubstr("libtorch_cpu.so: cannot open shared object file: torch "
                                       "2.11 is not installed: run `pip install torch==2.11.0`"));
}

TEST_F(SupervisorTest, NamesAShardThatMappedATruncatedFile) {
  const Outcome outcome = Run({"kill -BUS $$"}, kGood);
  EXPECT_THAT(outcome.error,
              HasSubstr("(SIGBUS): a file that it maps is shorter than it should be"));
}

TEST_F(SupervisorTest, AShardThatTheKernelKilledForMemoryIsNamedAsSuch) {
  root_.Write("/proc/self/cgroup", "0::/\n");
  root_.Write("/sys/fs/cgroup/memory.current", "1\n");
  root_.Write("/sys/fs/cgroup/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
  on_ready_ = [&] {
    root_.Write("/sys/fs/cgroup/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n");
    ::kill(pids_["shard-0"], SIGKILL);
  };
  const std::string plan = "echo MEMORY_PLAN memory plan of rank 0: a lot >&$PENSTOCK_NOTIFY_FD; ";
  const Outcome outcome = Run({"echo pid $$; " + plan + kGood}, kGood);
  EXPECT_EQ(outcome.exit_code, kExitMemory);
  EXPECT_THAT(outcome.error, HasSubstr("was killed by signal 9 (SIGKILL) by the kernel: out of "
                                       "memory (memory plan of rank 0: a lot)"));
}

TEST_F(SupervisorTest, AnEarlierKillForMemoryIsNotTheCause) {
  root_.Write("/proc/self/cgroup", "4:memory:/\n");
  root_.Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  root_.Write("/sys/fs/cgroup/memory/memory.oom_control", "under_oom 0\noom_kill 3\n");
  on_ready_ = [&] { ::kill(pids_["shard-0"], SIGKILL); };
  const Outcome outcome = Run({std::string("echo pid $$; ") + kGood}, kGood);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_THAT(outcome.error, Not(HasSubstr("memory")));
}

TEST_F(SupervisorTest, AKillForMemoryInAnotherGroupIsNotTheCause) {
  root_.Write("/proc/self/cgroup", "0::/own\n");
  root_.Write("/sys/fs/cgroup/own/memory.current", "1\n");
  root_.Write("/sys/fs/cgroup/own/memory.events", "oom_kill 0\n");
  root_.Write("/sys/fs/cgroup/memory.current", "1\n");
  on_ready_ = [&] {
    root_.Write("/sys/fs/cgroup/memory.events", "oom_kill 1\n");
    ::kill(pids_["shard-0"], SIGKILL);
  };
  EXPECT_EQ(Run({std::string("echo pid $$; ") + kGood}, kGood).exit_code, kExitShardLost);
}

TEST_F(SupervisorTest, AShardKilledWhileServingStopsTheRouterFirst) {
  on_ready_ = [&] { ::kill(pids_["shard-0"], SIGKILL); };
  const Outcome outcome = Run({std::string("echo pid $$; ") + kGood}, kGood);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_THAT(events_,
              ElementsAre(StartsWith("shard-0 says pid"), "ready at 127.0.0.1:1",
                          StartsWith("stopping: shard-0 (rank 0"), "router says got TERM"));
}

TEST_F(SupervisorTest, OfSeveralEndedShardsTheKilledOneIsReported) {
  on_ready_ = [&] {
    ::kill(pids_["shard-0"], SIGTERM);
    ::kill(pids_["shard-1"], SIGKILL);
    siginfo_t info;
    for (const auto& [name, pid] : pids_) {
      ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
    }
  };
  const std::string shard = std::string("echo pid $$; ") + kGood;
  const Outcome outcome = Run({shard, shard}, kGood);
  EXPECT_EQ(outcome.culprit, "shard-1");
}

TEST_F(SupervisorTest, PassesOnTheErrorAndExitCodeOfAChild) {
  const Outcome outcome =
      Run({"echo 'FAILED num_shard must divide 8 heads. Given: 3' >&$PENSTOCK_NOTIFY_FD; exit 3"},
          kGood);
  EXPECT_EQ(outcome.exit_code, kExitModel);
  EXPECT_THAT(outcome.error,
              HasSubstr("exited with status 3: num_shard must divide 8 heads. Given: 3"));
  EXPECT_THAT(outcome.last_lines, IsEmpty()) << "the cause is said once";
  EXPECT_THAT(events_, Not(Contains(HasSubstr("router"))));
}

TEST_F(SupervisorTest, WithoutANoticeTheLastErrorLineIsTheCause) {
  const Outcome outcome =
      Run({"echo 'penstock-shard: error: --rank x: must be an integer' >&2; exit 2"}, kGood);
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(outcome.error, HasSubstr("exited with status 2: --rank x: must be an integer"));
}

TEST_F(SupervisorTest, ARouterThatEndsIsAFailureToo) {
  const Outcome outcome = Run({kGood}, "exit 7");
  EXPECT_EQ(outcome.exit_code, kExitAddress);
  EXPECT_THAT(outcome.error, StartsWith("router (pid "));
  EXPECT_THAT(events_, Contains("shard-0 says got TERM"));
}

TEST_F(SupervisorTest, AShardThatEndsWithoutAnErrorIsLost) {
  EXPECT_EQ(Run({"exit 0"}, kGood).exit_code, kExitShardLost);
}

TEST_F(SupervisorTest, AMissingProgramStopsTheStart) {
  std::vector<ChildSpec> shards = {Shell("shard-0", kGood), Shell("shard-1", "")};
  shards[1].program = "/nowhere/shard";
  Supervisor supervisor(std::move(shards), Shell("router", kGood), timeouts_, signals_[0], *this);
  const Outcome outcome = supervisor.Run();
  EXPECT_EQ(outcome.exit_code, kExitFailure);
  EXPECT_EQ(outcome.error, "shard-1: cannot start /nowhere/shard: No such file or directory");
}

TEST_F(SupervisorTest, WithoutProgressTheStartFailsAndNamesThePendingChild) {
  timeouts_.startup = milliseconds(200);
  const Outcome outcome =
      Run({"echo PROGRESS loading 5 10 bytes >&$PENSTOCK_NOTIFY_FD; exec sleep 1000"}, kGood);
  EXPECT_EQ(outcome.exit_code, kExitFailure);
  EXPECT_EQ(outcome.error,
            "not ready: no progress for 0.200 s (--startup-timeout), still waiting for shard-0 "
            "(loading 5 of 10 bytes)");
}

TEST_F(SupervisorTest, ProgressKeepsASlowStartAlive) {
  timeouts_.startup = milliseconds(1500);
  on_ready_ = [&] { Send(SIGINT); };
  // 2 s in all, but never 1.5 s without progress.
  const std::string slow = std::string(
                               "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; "
                               "echo PROGRESS loading $i 10 >&$PENSTOCK_NOTIFY_FD; done; ") +
                           kGood;
  EXPECT_EQ(Run({slow}, kGood).error, "");
}

TEST_F(SupervisorTest, ChildrenThatIgnoreSignalsAreKilledAfterTheirTimeLimits) {
  timeouts_.drain = milliseconds(100);
  timeouts_.stop = milliseconds(100);
  on_ready_ = [&] { Send(SIGTERM); };
  const Outcome outcome = Run({kDeaf}, kDeaf);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(events_,
              ElementsAre("ready at 127.0.0.1:1", "stopping: received SIGTERM",
                          "stopping: the router still runs after its time limit; it is killed",
                          "stopping: shards still run after their time limit; they are killed"));
}

TEST_F(SupervisorTest, ASecondSignalStopsAtOnce) {
  int count = 0;
  on_ready_ = [&] { Send(SIGINT); };
  on_stopping_ = [&] {
    if (++count == 1) Send(SIGINT);
  };
  const Outcome outcome = Run({kDeaf, kDeaf}, kDeaf);
  EXPECT_EQ(outcome.exit_code, kExitFailure);
  EXPECT_EQ(outcome.error, "stopped at once after a second signal");
}

TEST_F(SupervisorTest, TheSameSignalSentTwiceIsOneSignal) {
  timeouts_.same_signal = seconds(60);
  on_ready_ = [&] { Send(SIGINT); };
  on_stopping_ = [&] { Send(SIGINT); };
  EXPECT_EQ(Run({kGood}, kGood).error, "");
}

TEST_F(SupervisorTest, ASignalBeforeReadyStopsInOrder) {
  on_line_ = [&](const std::string& line) {
    if (line == "loading") Send(SIGTERM);
  };
  const Outcome outcome =
      Run({"trap 'exit 0' TERM; echo loading; while :; do sleep 1000 & wait; done"}, kGood);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.error, "");
}

TEST_F(SupervisorTest, AShardLostDuringTheDrainIsStillReported) {
  on_ready_ = [&] { Send(SIGTERM); };
  on_stopping_ = [&] { ::kill(pids_["shard-0"], SIGKILL); };
  const std::string slow_router =
      "trap 'sleep 0.5; exit 0' TERM; echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; "
      "while :; do sleep 1000 & wait; done";
  const Outcome outcome = Run({std::string("echo pid $$; ") + kGood}, slow_router);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_THAT(outcome.error, StartsWith("shard-0 (rank 0, pid "));
}

TEST_F(SupervisorTest, AFloodOfOutputDelaysNoOtherChild) {
  on_ready_ = [&] { Send(SIGTERM); };
  const Outcome outcome = Run({std::string("yes & ") + kGood, kGood}, kGood);
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST_F(SupervisorTest, AShardThatStaysStoppedIsKilledAndReported) {
  timeouts_.rank = milliseconds(50);
  on_ready_ = [&] { StopOrContinue("shard-0", SIGSTOP); };
  const Outcome outcome = Run({std::string("echo pid $$; ") + kGood, kGood}, kGood);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_EQ(outcome.error, "shard-0 (rank 0, pid " + std::to_string(pids_["shard-0"]) +
                               ") had been stopped for 50 ms (--rank-timeout)");
}

TEST_F(SupervisorTest, AShardThatContinuesInTimeKeepsServing) {
  timeouts_.rank = milliseconds(300);
  on_ready_ = [&] {
    StopOrContinue("shard-0", SIGSTOP);
    ::kill(pids_["shard-1"], SIGUSR1);
  };
  on_line_ = [&](const std::string& line) {
    if (line == "now") StopOrContinue("shard-0", SIGCONT);
    if (line == "later") Send(SIGTERM);
  };
  const std::string pid = "echo pid $$; ";
  const std::string teller = pid + "trap 'echo now; sleep 0.5; echo later' USR1; " + kGood;
  const Outcome outcome = Run({pid + kGood, teller}, kGood);
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(events_, Contains("shard-0 says got TERM"));
}

TEST_F(SupervisorTest, WithoutARankTimeoutAStoppedShardIsNotKilled) {
  on_ready_ = [&] {
    StopOrContinue("shard-0", SIGSTOP);
    ::kill(pids_["shard-1"], SIGUSR1);
  };
  on_line_ = [&](const std::string& line) {
    if (line != "later") return;
    StopOrContinue("shard-0", SIGCONT);
    Send(SIGTERM);
  };
  const std::string pid = "echo pid $$; ";
  const std::string teller = pid + "trap 'sleep 0.2; echo later' USR1; " + kGood;
  EXPECT_EQ(Run({pid + kGood, teller}, kGood).error, "");
}

// Groups of two: shard-0 and shard-1, shard-2 and shard-3.
class SupervisorGroupsTest : public SupervisorTest {
 protected:
  SupervisorGroupsTest() {
    timeouts_.restart.first_pause = milliseconds(1);
    timeouts_.restart.longest_pause = milliseconds(1);
  }

  static std::string WithPid() { return std::string("echo pid $$; ") + kGood; }
  Outcome RunGroups(const std::string& router) {
    return Run({WithPid(), WithPid(), WithPid(), WithPid()}, router, 2);
  }
};

TEST_F(SupervisorGroupsTest, ADeadRankTakesItsGroupOnlyWhichIsStartedAgain) {
  std::map<std::string, pid_t> before;
  on_ready_ = [&] {
    before = pids_;
    ::kill(pids_["shard-3"], SIGKILL);
  };
  on_group_ = [&](const std::string& news) {
    if (news == "group 1 is loaded again") Send(SIGTERM);
  };
  const Outcome outcome = RunGroups(kGood);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(events_, Contains(StartsWith("group 1 is down: shard-3 (rank 1, pid ")));
  EXPECT_EQ(pids_["shard-0"], before["shard-0"]);
  EXPECT_EQ(pids_["shard-1"], before["shard-1"]);
  EXPECT_NE(pids_["shard-2"], before["shard-2"]);
  EXPECT_NE(pids_["shard-3"], before["shard-3"]);
}

TEST_F(SupervisorGroupsTest, AStoppedRankTakesItsGroupOnlyWhichIsStartedAgain) {
  timeouts_.rank = milliseconds(50);
  on_ready_ = [&] { StopOrContinue("shard-0", SIGSTOP); };
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again") Send(SIGTERM);
  };
  EXPECT_EQ(RunGroups(kGood).exit_code, 0);
  EXPECT_THAT(events_,
              Contains(::testing::AllOf(StartsWith("group 0 is down: shard-0 (rank 0, pid "),
                                        HasSubstr("had been stopped for 50 ms (--rank-timeout)"))));
  EXPECT_THAT(events_, Not(Contains(StartsWith("group 1 is down"))));
}

TEST_F(SupervisorGroupsTest, AGroupThatTheRouterHasLostIsKilledAndStartedAgain) {
  const std::string router = std::string("echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; ") +
                             "echo GROUP_LOST 0 rank 1 hangs >&$PENSTOCK_NOTIFY_FD; "
                             "echo GROUP_LOST 9 nonsense >&$PENSTOCK_NOTIFY_FD; " +
                             kGood;
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again") Send(SIGTERM);
  };
  const Outcome outcome = RunGroups(router);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(events_, Contains("group 0 is down: rank 1 hangs"));
  EXPECT_THAT(events_, Not(Contains(StartsWith("group 1 is down"))));
}

TEST_F(SupervisorGroupsTest, AGroupThatKeepsFailingStaysDownAndTheLastOneEndsTheServer) {
  timeouts_.restart.restarts = 2;
  std::vector<std::string> down;
  on_ready_ = [&] { ::kill(pids_["shard-0"], SIGKILL); };
  on_group_ = [&](const std::string& news) {
    down.push_back(news);
    if (news == "group 0 is loaded again") ::kill(pids_["shard-1"], SIGKILL);
    if (news == "group 0 failed too often and stays down") ::kill(pids_["shard-2"], SIGKILL);
    if (news == "group 1 is loaded again") ::kill(pids_["shard-2"], SIGKILL);
  };
  const Outcome outcome = RunGroups(kGood);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_THAT(outcome.error, HasSubstr("no replica group is left: shard-2 (rank 0"));
  EXPECT_THAT(down, Contains("group 0 failed too often and stays down"));
  EXPECT_THAT(down, Contains("group 1 failed too often and stays down"));
  EXPECT_EQ(std::count(down.begin(), down.end(), "group 0 is loaded again"), 2);
}

TEST_F(SupervisorGroupsTest, ADeathDuringTheStartIsAFailureOfTheStart) {
  const Outcome outcome = Run({kGood, kGood, kGood, "exit 3"}, kGood, 2);
  EXPECT_EQ(outcome.exit_code, kExitModel);
  EXPECT_THAT(outcome.error, StartsWith("shard-3 (rank 1"));
}

TEST(RestartPolicyTest, PausesDoubleUntilTheLimitAndTheWindowForgets) {
  RestartPolicy policy({.first_pause = seconds(1),
                        .longest_pause = seconds(3),
                        .restarts = 4,
                        .window = seconds(100)});
  const RestartPolicy::Time begin{};
  std::vector<std::optional<std::chrono::nanoseconds>> pauses;
  for (int i = 0; i < 5; ++i) pauses.push_back(policy.OnFailure(begin + seconds(i)));
  EXPECT_THAT(pauses, ElementsAre(seconds(1), seconds(2), seconds(3), seconds(3), std::nullopt));
  EXPECT_EQ(policy.OnFailure(begin + seconds(1000)), seconds(1));
}

}  // namespace
}  // namespace penstock::launcher
