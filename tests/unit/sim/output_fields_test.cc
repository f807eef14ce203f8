#include "sim/output_fields.h"

#include <gtest/gtest.h>

#include "scheduler/log/output_digest.h"

namespace penstock::sim {
namespace {

scheduler::Outputs WithADecision() {
  scheduler::Outputs out;
  Decision& decision = out.decisions.emplace_back();
  decision.request = RequestId(7);
  decision.needed = 3;
  return out;
}

TEST(OutputFieldsTest, AnEntryOfAListAddsItsFields) {
  scheduler::Outputs none;
  scheduler::Outputs one = WithADecision();
  EXPECT_EQ(CountFields(none), 5u) << "the lengths of the five lists";
  EXPECT_GE(CountFields(one), CountFields(none) + 9) << "a decision has nine members";
}

TEST(OutputFieldsTest, CountingChangesNothing) {
  scheduler::Outputs out = WithADecision();
  CountFields(out);
  EXPECT_EQ(scheduler::EncodeOutputs(out), scheduler::EncodeOutputs(WithADecision()));
}

TEST(OutputFieldsTest, EachFieldGetsAnotherValue) {
  scheduler::Outputs out = WithADecision();
  const std::string before = scheduler::EncodeOutputs(out);
  for (std::size_t field = 0; field < CountFields(out); ++field) {
    scheduler::Outputs other = WithADecision();
    ChangeField(other, field);
    EXPECT_NE(scheduler::EncodeOutputs(other), before) << "field " << field;
  }
}

}  // namespace
}  // namespace penstock::sim
