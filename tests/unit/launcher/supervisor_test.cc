#include "launcher/supervisor.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "common/exit_codes.h"
#include "tests/unit/launcher/supervisor_fixture.h"

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

TEST_F(SupervisorTest, TheCauseOfAFailureIsInTheErrorAlone) {
  const Outcome outcome = Run({"echo FAILED no such model >&$PENSTOCK_NOTIFY_FD; exit 3"}, kGood);
  EXPECT_THAT(outcome.error, ::testing::EndsWith(") exited with status 3: no such model"));
  EXPECT_THAT(events_, ElementsAre(::testing::MatchesRegex(
                           "stopping: shard-0 \\(rank 0, pid [0-9]+\\) exited with status 3")));
}

TEST_F(SupervisorTest, AnotherFailureIsLoggedOnce) {
  const std::string failed = "trap 'echo FAILED peer lost >&$PENSTOCK_NOTIFY_FD; exit 6' TERM; ";
  const std::string shard = failed + "while :; do sleep 1000 & wait; done";
  const std::string first = "sleep 0.1; echo FAILED disk full >&$PENSTOCK_NOTIFY_FD; exit 3";
  const Outcome outcome = Run({first, shard, shard}, kGood);
  EXPECT_THAT(outcome.error, HasSubstr("disk full"));
  EXPECT_THAT(events_, ElementsAre(StartsWith("stopping: shard-0 "),
                                   ::testing::MatchesRegex("shard-[12] says peer lost")));
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

// The kernel needs a while to free a large process. What stops the server meanwhile does not hide
// the kill: a signal, or the router that lost the connection.
TEST_F(SupervisorTest, AKillForMemoryThatEndsWhileTheServerStopsIsNamedAsSuch) {
  root_.Write("/proc/self/cgroup", "0::/\n");
  root_.Write("/sys/fs/cgroup/memory.current", "1\n");
  const std::string router = "echo pid $$; trap 'exit 6' USR1; " + std::string(kGood);
  const std::string shard =
      "echo pid $$; trap 'echo dies; kill -KILL $$' TERM; echo READY x >&$PENSTOCK_NOTIFY_FD; "
      "while :; do sleep 1000 & wait; done";
  on_line_ = [&](const std::string& line) {
    if (line == "dies") root_.Write("/sys/fs/cgroup/memory.events", "oom_kill 1\n");
  };
  for (const bool signal : {true, false}) {
    root_.Write("/sys/fs/cgroup/memory.events", "oom_kill 0\n");
    on_ready_ = [&] { signal ? Send(SIGINT) : (void)::kill(pids_["router"], SIGUSR1); };
    const Outcome outcome = Run({shard}, router);
    EXPECT_EQ(outcome.exit_code, kExitMemory);
    EXPECT_THAT(outcome.error, StartsWith("shard-0 (rank 0, pid "));
    EXPECT_THAT(outcome.error, HasSubstr("by the kernel: out of memory"));
  }
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

TEST_F(SupervisorTest, AShardWhoseRouterEndsFirstIsNamed) {
  timeouts_.report = seconds(60);
  const std::string router = "echo pid $$; trap 'exit 6' USR1; " + std::string(kGood);
  const std::string shard =
      "echo pid $$; trap 'sleep 0.2; kill -KILL $$' USR1; " + std::string(kGood);
  on_ready_ = [&] {
    ::kill(pids_["shard-0"], SIGUSR1);
    ::kill(pids_["router"], SIGUSR1);
  };
  const Outcome outcome = Run({shard}, router);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_THAT(outcome.error, StartsWith("shard-0 (rank 0, pid "));
  EXPECT_THAT(outcome.error, HasSubstr("killed by signal 9"));
}

TEST_F(SupervisorTest, ARouterThatLostAShardWhichRunsOnIsReported) {
  timeouts_.report = milliseconds(20);
  const Outcome outcome = Run({kGood}, "echo READY x >&$PENSTOCK_NOTIFY_FD; exit 6");
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_THAT(outcome.error, StartsWith("router (pid "));
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

// Both are there when the supervisor reads: it waits for the pipe until the child has written them.
TEST_F(SupervisorTest, ProgressIsShownBeforeTheLineThatSaysWhatIsDone) {
  const std::string pipe = root_ / "written";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  on_line_ = [&](const std::string& line) {
    if (line == "begins") std::ifstream(pipe).get();
  };
  on_ready_ = [&] { Send(SIGTERM); };
  const std::string shard =
      "echo begins; echo PROGRESS loading 10 10 bytes >&$PENSTOCK_NOTIFY_FD; "
      "echo loaded; echo > " +
      pipe + "; ";
  Run({shard + kGood}, kGood);
  const auto progress = std::ranges::find(events_, "shard-0 at loading");
  EXPECT_NE(std::find(progress, events_.end(), "shard-0 says loaded"), events_.end());
}

TEST_F(SupervisorTest, AChildThatALimitLeavesTooLittleMemoryIsNamedAsSuch) {
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  const rlimit limit{rlim_t{64} << 40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  const Outcome thrown = Run({"echo \"what(): std::bad_alloc\"; kill -ABRT $$"}, kGood);
  const Outcome told = Run({"echo error: cannot allocate 3 bytes; echo FAILED cannot allocate 3 "
                            "bytes >&$PENSTOCK_NOTIFY_FD; kill -ABRT $$"},
                           kGood);
  const Outcome other = Run({"echo std::bad_alloc; echo FAILED no model >&$PENSTOCK_NOTIFY_FD; "
                             "exit 3"},
                            kGood);
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(thrown.exit_code, kExitMemory);
  EXPECT_THAT(thrown.error, HasSubstr("(SIGABRT): `ulimit -v 68719476736` (KiB)"));
  EXPECT_THAT(thrown.last_lines, ::testing::Contains("what(): std::bad_alloc"));
  EXPECT_EQ(told.exit_code, kExitMemory);
  EXPECT_THAT(told.error,
              HasSubstr("(SIGABRT): cannot allocate 3 bytes: `ulimit -v 68719476736` (KiB)"));
  EXPECT_EQ(other.exit_code, kExitModel);
  EXPECT_THAT(other.error, HasSubstr("exited with status 3: no model"));
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
            "not ready: no progress for 0.200 s, still waiting for shard-0 (loading 5 of 10 "
            "bytes); raise --startup-timeout");
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
  EXPECT_EQ(outcome.error, "stopped at once, as a second signal asks");
}

TEST_F(SupervisorTest, AHangupWithoutFilesToReadStopsAndSaysWhy) {
  on_ready_ = [&] { Send(SIGHUP); };
  EXPECT_EQ(Run({kGood}, kGood).exit_code, 0);
  EXPECT_THAT(events_, ::testing::Contains("stopping: received SIGHUP (there is no --api-keys-file "
                                           "and no --tls-cert to read again)"));
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

}  // namespace
}  // namespace penstock::launcher
