#include "router/http/exchange_state.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace penstock::router {
namespace {

struct Wakes {
  int count = 0;
  std::function<void()> Counter() {
    return [this] { ++count; };
  }
};

TEST(ExchangeState, WritesBetweenTwoTakesComeOutTogetherAndWakeOnce) {
  Wakes wakes;
  ExchangeState state(100, wakes.Counter());
  state.StartStream({});
  EXPECT_TRUE(state.Write("a"));
  EXPECT_TRUE(state.Write("b"));
  EXPECT_EQ(wakes.count, 1);
  state.WakeSeen();
  ExchangeState::Output output = state.Take();
  EXPECT_TRUE(output.head && output.stream);
  EXPECT_EQ(output.events, "ab");
  EXPECT_FALSE(output.finished);
  state.Finish();
  EXPECT_EQ(wakes.count, 2);
  EXPECT_TRUE(state.Take().finished);
}

// The connection may be busy writing: the wake of the first event was seen, nothing was taken
// since.
TEST(ExchangeState, AnOverflowWakesAConnectionThatHasNotTakenWhatIsPending) {
  Wakes wakes;
  ExchangeState state(10, wakes.Counter());
  state.StartStream({});
  state.WakeSeen();
  state.Take();
  EXPECT_TRUE(state.Write("12345"));
  EXPECT_EQ(wakes.count, 2);
  state.WakeSeen();
  EXPECT_FALSE(state.Write("678901"));
  EXPECT_EQ(wakes.count, 3);
  EXPECT_TRUE(state.Overflowed());
  EXPECT_FALSE(state.Write("1"));
}

TEST(ExchangeState, BytesBeingWrittenCountUntilTheyAreDelivered) {
  Wakes wakes;
  ExchangeState state(10, wakes.Counter());
  state.StartStream({});
  EXPECT_TRUE(state.Write("1234567"));
  state.Take();
  state.Delivered();
  EXPECT_TRUE(state.Write("1234567"));
  state.Take();
  EXPECT_FALSE(state.Write("1234"));  // 7 still on their way
}

TEST(ExchangeState, OnlyTheFirstAnswerCounts) {
  Wakes wakes;
  ExchangeState state(10, wakes.Counter());
  state.Respond({200, "", {}, "first"});
  state.Respond({500, "", {}, "second"});
  state.StartStream({});
  EXPECT_FALSE(state.Write("x"));
  const ExchangeState::Output output = state.Take();
  EXPECT_EQ(output.head->body, "first");
  EXPECT_FALSE(output.stream);
}

TEST(ExchangeState, CloseIsToldOnceAndNotBehindTheEnd) {
  Wakes wakes;
  ExchangeState open(10, wakes.Counter());
  std::vector<CloseReason> told;
  open.OnClose([&](CloseReason reason) { told.push_back(reason); });
  open.Close(CloseReason::kStopping);
  open.Close(CloseReason::kClientGone);
  EXPECT_EQ(told, std::vector{CloseReason::kStopping});

  ExchangeState finished(10, wakes.Counter());
  finished.OnClose([&](CloseReason reason) { told.push_back(reason); });
  finished.Respond({});
  finished.Close(CloseReason::kClientGone);
  EXPECT_EQ(told.size(), 1U);
}

TEST(ExchangeState, TheCallbackMayOwnTheHandle) {
  Wakes wakes;
  auto state = std::make_shared<ExchangeState>(10, wakes.Counter());
  std::shared_ptr<Exchange> handle = MakeExchange(state);
  // Letting go of the handle destroys the callback, which must not happen under the state's mutex.
  struct Owner {
    std::shared_ptr<ExchangeState> state;
    ~Owner() { state->Overflowed(); }
  };
  state->OnClose([owner = std::make_shared<Owner>(Owner{state})](CloseReason) {});
  handle.reset();
  EXPECT_EQ(state->Take().head->status, 500);
}

TEST(ExchangeState, NothingWakesADetachedConnection) {
  Wakes wakes;
  ExchangeState state(10, wakes.Counter());
  state.Detach();
  state.Respond({});
  EXPECT_EQ(wakes.count, 0);
}

}  // namespace
}  // namespace penstock::router
