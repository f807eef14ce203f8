#include "shard/service/formation.h"

#include <gmock/gmock.h>

#include "common/status.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;
using enum FormationCall;

class FormationTest : public testing::Test {
 protected:
  void Allow(FormationCall call, Epoch epoch = Epoch()) {
    ASSERT_EQ(Message(formation_.Begin(call, epoch)), "");
  }
  void Do(FormationCall call, Epoch epoch = Epoch(), bool ok = true) {
    Allow(call, epoch);
    formation_.End(call, ok);
  }
  void Refuse(FormationCall call, Epoch epoch, const std::string& part) {
    const absl::Status status = formation_.Begin(call, epoch);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(part));
  }
  void Form(Epoch epoch) {
    Do(kConfigure, epoch);
    Do(kWarmup, epoch);
    Do(kCommit, epoch);
  }

  Formation formation_;
};

TEST_F(FormationTest, RefusesCallsBeforeTheModelIsLoaded) {
  Refuse(kConfigure, Epoch(1), "while the model is loading");
}

TEST_F(FormationTest, TheExpectedCallIsNamed) {
  formation_.Loaded();
  Refuse(kWarmup, Epoch(1), "Warmup came out of order: expected Configure");
  Do(kConfigure, Epoch(1));
  Refuse(kExecute, Epoch(), "Execute came out of order: expected Warmup");
  Do(kWarmup, Epoch(1));
  Refuse(kWarmup, Epoch(1), "Warmup came out of order: expected Commit");
  Do(kCommit, Epoch(1));
  Do(kExecute);
}

TEST_F(FormationTest, OneDriverAtATime) {
  formation_.Loaded();
  Form(Epoch(1));
  Allow(kExecute);
  Refuse(kExecute, Epoch(), "one driver at a time");
  Refuse(kConfigure, Epoch(2), "one driver at a time");
  formation_.End(kExecute, true);
  Do(kExecute);
}

TEST_F(FormationTest, ABrokenGroupNeedsConfigure) {
  formation_.Loaded();
  Form(Epoch(1));
  Do(kExecute, Epoch(), false);
  Refuse(kExecute, Epoch(), "expected Configure");
  Form(Epoch(2));
  Do(kExecute);
}

TEST_F(FormationTest, ConfigureNeedsANewEpochAndLaterCallsTheSame) {
  formation_.Loaded();
  Refuse(kConfigure, Epoch(0), "`epoch` must be above 0");
  Do(kConfigure, Epoch(5));
  Refuse(kConfigure, Epoch(5), "`epoch` must be above 5");
  Refuse(kWarmup, Epoch(4), "`epoch` must be 5");
  Do(kWarmup, Epoch(5));
  Refuse(kCommit, Epoch(6), "`epoch` must be 5");
}

TEST_F(FormationTest, ASecondDriverHoldsTheLeaseWhileItKeepsSequences) {
  formation_.Loaded();
  ASSERT_EQ(Message(formation_.BeginSecond()), "");
  formation_.SecondFormed();
  Refuse(kConfigure, Epoch(1), "generate.v3 drives this shard");
  formation_.EndSecond(true);
  Refuse(kConfigure, Epoch(1), "generate.v3 drives this shard");
  ASSERT_EQ(Message(formation_.BeginSecond()), "");
  formation_.EndSecond(false);
  EXPECT_TRUE(formation_.second_formed());
  Refuse(kExecute, Epoch(), "expected Configure");
  Form(Epoch(1));
  EXPECT_FALSE(formation_.second_formed());
}

TEST_F(FormationTest, ASecondDriverWaitsForTheEndOfExecute) {
  formation_.Loaded();
  Form(Epoch(1));
  Allow(kExecute);
  const absl::Status refused = formation_.BeginSecond();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(Message(refused), HasSubstr("Execute"));
  formation_.End(kExecute, true);
  EXPECT_EQ(Message(formation_.BeginSecond()), "");
  formation_.EndSecond(false);
  Do(kExecute);  // the native group stands as long as the second driver formed none
}

}  // namespace
}  // namespace penstock::shard
