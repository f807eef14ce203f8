// Several replica groups: one that is lost is started again.
#include <signal.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/exit_codes.h"
#include "tests/unit/launcher/supervisor_fixture.h"

namespace penstock::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
    if (news == "group 1 is loaded again and joins the router") Send(SIGTERM);
  };
  const Outcome outcome = RunGroups(kGood);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(events_, Contains(StartsWith("group 1 is down: shard-3 (rank 1, pid ")));
  EXPECT_EQ(pids_["shard-0"], before["shard-0"]);
  EXPECT_EQ(pids_["shard-1"], before["shard-1"]);
  EXPECT_NE(pids_["shard-2"], before["shard-2"]);
  EXPECT_NE(pids_["shard-3"], before["shard-3"]);
}

TEST_F(SupervisorGroupsTest, ASingleGroupIsStartedAgainWhereThatIsWanted) {
  on_ready_ = [&] { ::kill(pids_["shard-1"], SIGKILL); };
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again and joins the router") Send(SIGTERM);
  };
  timeouts_.restart.single = true;
  EXPECT_EQ(Run({WithPid(), WithPid()}, kGood, 2).exit_code, 0);
  EXPECT_THAT(events_, Contains(StartsWith("group 0 is down: shard-1 (rank 1, pid ")));

  timeouts_.restart.single = false;
  EXPECT_EQ(Run({WithPid(), WithPid()}, kGood, 2).exit_code, kExitShardLost);
}

// The router still has requests that need the group.
TEST_F(SupervisorGroupsTest, ASingleGroupThatIsLostDuringTheDrainIsStartedAgain) {
  const std::string router =
      "trap 'echo drains' TERM; trap 'exit 0' USR1; echo pid $$; "
      "echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; while :; do sleep 1000 & wait; done";
  on_ready_ = [&] { Send(SIGTERM); };
  on_line_ = [&](const std::string& line) {
    if (line == "drains") ::kill(pids_["shard-1"], SIGKILL);
  };
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again and joins the router") ::kill(pids_["router"], SIGUSR1);
  };
  timeouts_.restart.single = true;
  const Outcome outcome = Run({WithPid(), WithPid()}, router, 2);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_THAT(events_, Contains("group 0 is loaded again and joins the router"));
}

TEST_F(SupervisorGroupsTest, AGroupThatWaitsForItsStartDelaysNoStop) {
  timeouts_.restart.first_pause = timeouts_.restart.longest_pause = seconds(60);
  timeouts_.restart.single = true;
  on_ready_ = [&] { ::kill(pids_["shard-1"], SIGTERM); };
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 starts again in 60 s") Send(SIGTERM);
  };
  EXPECT_EQ(Run({WithPid(), WithPid()}, kGood, 2).exit_code, 0);
}

TEST_F(SupervisorGroupsTest, AStoppedRankTakesItsGroupOnlyWhichIsStartedAgain) {
  timeouts_.rank = milliseconds(50);
  on_ready_ = [&] { StopOrContinue("shard-0", SIGSTOP); };
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again and joins the router") Send(SIGTERM);
  };
  EXPECT_EQ(RunGroups(kGood).exit_code, 0);
  EXPECT_THAT(events_, Contains(AllOf(StartsWith("group 0 is down: shard-0 (rank 0, pid "),
                                      HasSubstr("had been stopped for 50 ms (--rank-timeout)"))));
  EXPECT_THAT(events_, Not(Contains(StartsWith("group 1 is down"))));
}

TEST_F(SupervisorGroupsTest, AGroupThatTheRouterHasLostIsKilledAndStartedAgain) {
  const std::string router = std::string("echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; ") +
                             "echo GROUP_LOST 0 rank 1 hangs >&$PENSTOCK_NOTIFY_FD; "
                             "echo GROUP_LOST 9 nonsense >&$PENSTOCK_NOTIFY_FD; " +
                             kGood;
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again and joins the router") Send(SIGTERM);
  };
  const Outcome outcome = RunGroups(router);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(events_, Contains("group 0 is down: rank 1 hangs"));
  EXPECT_THAT(events_, Not(Contains(StartsWith("group 1 is down"))));
}

// Under load the router sees the closed socket before the process has ended.
TEST_F(SupervisorGroupsTest, AKilledRankIsNamedAlsoIfTheRouterReportsItFirst) {
  timeouts_.report = seconds(60);
  const std::string router =
      "trap 'echo GROUP_LOST 0 group 0: shard-1 was lost: Socket closed "
      ">&$PENSTOCK_NOTIFY_FD; echo told' USR1; echo pid $$; " +
      std::string(kGood);
  on_ready_ = [&] { ::kill(pids_["router"], SIGUSR1); };
  on_line_ = [&](const std::string& line) {
    if (line == "told") ::kill(pids_["shard-1"], SIGKILL);
  };
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again and joins the router") Send(SIGTERM);
  };
  EXPECT_EQ(RunGroups(router).exit_code, 0);
  EXPECT_THAT(events_, Contains(AllOf(StartsWith("group 0 is down: shard-1 (rank 1, pid "),
                                      HasSubstr(") was killed by signal 9 (SIGKILL)"))));
  EXPECT_THAT(events_, Not(Contains(HasSubstr("Socket closed"))));
}

// The rank's end is known before; the group must not be ended once more after its start.
TEST_F(SupervisorGroupsTest, AReportOnAGroupThatIsDownIsLate) {
  timeouts_.restart.first_pause = timeouts_.restart.longest_pause = seconds(1);
  timeouts_.report = milliseconds(1100);
  const std::string router =
      "trap 'echo GROUP_LOST 0 Socket closed >&$PENSTOCK_NOTIFY_FD' USR1; "
      "trap 'sleep 0.3; echo later' USR2; echo pid $$; " +
      std::string(kGood);
  on_ready_ = [&] { ::kill(pids_["shard-1"], SIGKILL); };
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 starts again in 1 s") ::kill(pids_["router"], SIGUSR1);
    if (news == "group 0 is loaded again and joins the router") ::kill(pids_["router"], SIGUSR2);
  };
  on_line_ = [&](const std::string& line) {
    if (line == "later") Send(SIGTERM);
  };
  EXPECT_EQ(RunGroups(router).exit_code, 0);
  EXPECT_THAT(events_, Contains(StartsWith("group 0 is down: ")).Times(1));
}

TEST_F(SupervisorGroupsTest, AReportNamesItsGroupOnceAndTheReturnAsItHappens) {
  const std::string router = std::string("echo READY 127.0.0.1:1 >&$PENSTOCK_NOTIFY_FD; ") +
                             "echo GROUP_LOST 0 group 0: shard-1 hangs >&$PENSTOCK_NOTIFY_FD; " +
                             kGood;
  on_group_ = [&](const std::string& news) {
    if (news == "group 0 is loaded again and joins the router") Send(SIGTERM);
  };
  EXPECT_EQ(RunGroups(router).exit_code, 0);
  const auto down = std::ranges::find(events_, "group 0 is down: shard-1 hangs");
  EXPECT_NE(std::find(down, events_.end(), "group 0 is being loaded again"), events_.end());
}

TEST_F(SupervisorGroupsTest, AGroupThatKeepsFailingStaysDownAndTheLastOneEndsTheServer) {
  timeouts_.restart.restarts = 2;
  std::vector<std::string> down;
  on_ready_ = [&] { ::kill(pids_["shard-0"], SIGKILL); };
  on_group_ = [&](const std::string& news) {
    down.push_back(news);
    if (news == "group 0 is loaded again and joins the router") ::kill(pids_["shard-1"], SIGKILL);
    if (news == "group 0 failed too often and stays down") ::kill(pids_["shard-2"], SIGKILL);
    if (news == "group 1 is loaded again and joins the router") ::kill(pids_["shard-2"], SIGKILL);
  };
  const Outcome outcome = RunGroups(kGood);
  EXPECT_EQ(outcome.exit_code, kExitShardLost);
  EXPECT_THAT(outcome.error, HasSubstr("no replica group is left: shard-2 (rank 0"));
  EXPECT_THAT(down, Contains("group 0 failed too often and stays down"));
  EXPECT_THAT(down, Contains("group 1 failed too often and stays down"));
  EXPECT_EQ(std::count(down.begin(), down.end(), "group 0 is loaded again and joins the router"),
            2);
}

// Prints what the launcher adds to the arguments of a router that it starts again.
std::string AgainRouter() { return std::string("echo pid $$; echo \"$0 $1\"; ") + kGood; }

class SupervisorRouterTest : public SupervisorGroupsTest {
 protected:
  SupervisorRouterTest() {
    timeouts_.restart.single = true;
    timeouts_.router_restart.first_pause = milliseconds(1);
    on_ready_ = [this] { ::kill(pids_["router"], SIGKILL); };
  }
  void OnReturn(std::function<void()> then) {
    on_group_ = [then = std::move(then)](const std::string& news) {
      if (news == "the router serves again on 127.0.0.1:1") then();
    };
  }
};

TEST_F(SupervisorRouterTest, ADeadRouterIsStartedAgainOnItsPortAndTheShardsRunOn) {
  std::map<std::string, pid_t> before;
  on_ready_ = [&] {
    before = pids_;
    ::kill(pids_["router"], SIGKILL);
  };
  OnReturn([this] { Send(SIGTERM); });
  const Outcome outcome = RunGroups(AgainRouter());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_THAT(events_, Contains("router says --rejoin --port=1"));
  EXPECT_NE(pids_["router"], before["router"]);
  for (const char* shard : {"shard-0", "shard-1", "shard-2", "shard-3"}) {
    EXPECT_EQ(pids_[shard], before[shard]);
  }
}

TEST_F(SupervisorRouterTest, ARouterThatEndsTooOftenEndsTheServer) {
  timeouts_.router_restart.restarts = 2;
  OnReturn([this] { ::kill(pids_["router"], SIGKILL); });
  const Outcome outcome = RunGroups(AgainRouter());
  EXPECT_EQ(outcome.exit_code, kExitFailure);
  EXPECT_THAT(outcome.error, HasSubstr("was killed by signal 9 (SIGKILL); it ended too often"));
}

TEST_F(SupervisorRouterTest, ARouterThatRefusesToStartAgainEndsTheServerWithItsCode) {
  const Outcome outcome = RunGroups("[ \"$0\" = --rejoin ] && exit 7; " + AgainRouter());
  EXPECT_EQ(outcome.exit_code, kExitAddress);
}

TEST_F(SupervisorRouterTest, AStopBeforeTheRouterIsBackIsInOrder) {
  timeouts_.router_restart.first_pause = seconds(60);
  timeouts_.router_restart.longest_pause = seconds(60);
  on_group_ = [this](const std::string&) { Send(SIGTERM); };
  EXPECT_EQ(RunGroups(AgainRouter()).exit_code, 0);
}

TEST_F(SupervisorGroupsTest, ADeathDuringTheStartIsAFailureOfTheStart) {
  const Outcome outcome = Run({kGood, kGood, kGood, "exit 3"}, kGood, 2);
  EXPECT_EQ(outcome.exit_code, kExitModel);
  EXPECT_THAT(outcome.error, StartsWith("shard-3 (rank 1"));
}

}  // namespace
}  // namespace penstock::launcher
