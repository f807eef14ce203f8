#include "router/dispatch/health_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class HealthProbeTest : public testing::Test {
 protected:
  void Start(HealthProbeOptions options) {
    probe_.emplace(options, [this](std::shared_ptr<GenerationSink> sink) {
      ++probes_;
      sink_ = std::move(sink);
    });
  }

  std::future<HealthReport> Ask(Health state = Health::kReady, bool busy = false) {
    auto promise = std::make_shared<std::promise<HealthReport>>();
    auto future = promise->get_future();
    probe_->Ask({state, "known"}, busy,
                [promise](const HealthReport& report) { promise->set_value(report); });
    return future;
  }
  static bool Answered(const std::future<HealthReport>& future) {
    return future.wait_for(milliseconds(0)) == std::future_status::ready;
  }

  int probes_ = 0;
  std::shared_ptr<GenerationSink> sink_;
  std::optional<HealthProbe> probe_;
};

TEST_F(HealthProbeTest, ABusyOrRecentlyUsedOrFailedServerIsNotProbed) {
  Start({.idle = std::chrono::hours(1)});
  EXPECT_EQ(Ask().get().state, Health::kReady);
  Start({.idle = Duration(1)});
  EXPECT_EQ(Ask(Health::kReady, true).get().state, Health::kReady);
  EXPECT_EQ(Ask(Health::kFailed).get().detail, "known");
  Start({});
  EXPECT_EQ(Ask().get().state, Health::kReady);
  EXPECT_EQ(probes_, 0);
}

TEST_F(HealthProbeTest, QuestionsShareOneProbe) {
  Start({.idle = Duration(1)});
  auto first = Ask();
  auto second = Ask(Health::kReady, true);  // the probe itself is open now
  EXPECT_FALSE(Answered(first));
  EXPECT_FALSE(Answered(second));
  EXPECT_EQ(probes_, 1);
  sink_->OnEvents({GenerationStart{}});
  EXPECT_FALSE(Answered(first));
  sink_->OnEvents({GenerationToken{}, GenerationEnd{}});
  EXPECT_EQ(first.get().state, Health::kReady);
  EXPECT_EQ(second.get().state, Health::kReady);
}

TEST_F(HealthProbeTest, AFailedProbeIsAFailureAndTheNextQuestionTriesAgain) {
  Start({.idle = Duration(1)});
  auto first = Ask();
  sink_->OnEvents({GenerationError{ErrorKind::kGeneration, "the group is gone", "", {}}});
  EXPECT_THAT(first.get().detail, HasSubstr("the group is gone"));
  Ask();
  EXPECT_EQ(probes_, 2);
}

TEST_F(HealthProbeTest, WaitingIsBoundedInTimeAndNumber) {
  Start({.idle = Duration(1), .patience = milliseconds(100), .most_waiting = 1});
  auto first = Ask();
  EXPECT_EQ(Ask().get().state, Health::kFailed);
  EXPECT_EQ(first.get().state, Health::kFailed);
  EXPECT_THAT(Ask().get().detail, HasSubstr("do not answer a probe"));
  EXPECT_EQ(probes_, 1);
  sink_->OnEvents({GenerationToken{}, GenerationEnd{}});  // it came back after all
  Ask();
  EXPECT_EQ(probes_, 2);
}

TEST_F(HealthProbeTest, StopAnswersWaitingQuestions) {
  Start({.idle = Duration(1)});
  auto first = Ask();
  probe_->Stop();
  EXPECT_EQ(first.get().state, Health::kDraining);
}

}  // namespace
}  // namespace penstock::router
