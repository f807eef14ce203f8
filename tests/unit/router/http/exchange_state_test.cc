#include "router/http/exchange_state.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
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

TEST(ExchangeState, WritesBetweenTwoTakesAreTakenTogetherAndWakeOnce) {
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
TEST(ExchangeState, AnOverflowWakesAConnectionThatHasPendingEvents) {
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

// A stream whose head is out, on one end of a pair of sockets.
struct DirectStream {
  explicit DirectStream(std::size_t max_behind) : state(max_behind, wakes.Counter()) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    state.StartStream({});
    state.WakeSeen();
    state.Take();
    state.Delivered();
    state.OpenDirect(ends[0], true);
    wakes.count = 0;
  }
  ~DirectStream() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::string Received() {
    std::array<char, 4096> buffer;
    std::string all;
    for (ssize_t n; (n = ::recv(ends[1], buffer.data(), buffer.size(), 0)) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return all;
  }

  std::array<int, 2> ends{};
  Wakes wakes;
  ExchangeState state;
};

TEST(ExchangeState, WhileNothingIsPendingAnEventIsSentWithoutAWake) {
  DirectStream stream(1000);
  EXPECT_EQ(stream.state.Take().events, "");  // the connection has nothing to do: from now on
  EXPECT_TRUE(stream.state.Write("hello"));
  EXPECT_EQ(stream.Received(), "5\r\nhello\r\n");
  EXPECT_EQ(stream.wakes.count, 0);
  EXPECT_EQ(stream.state.DirectSent().bytes, 10U);
  EXPECT_EQ(stream.state.Take().events, "");
}

TEST(ExchangeState, PendingEventsAreSentFirst) {
  DirectStream stream(1000);
  EXPECT_TRUE(stream.state.Write("a"));  // the connection has not yet said that it waits
  EXPECT_TRUE(stream.state.Write("b"));
  EXPECT_EQ(stream.Received(), "");
  EXPECT_EQ(stream.state.Take().events, "ab");
  EXPECT_TRUE(stream.state.Write("c"));  // it is still writing these
  EXPECT_EQ(stream.Received(), "");
  stream.state.Delivered();
  EXPECT_EQ(stream.state.Take().events, "c");
}

TEST(ExchangeState, BytesThatTheKernelDoesNotTakeStayInOrder) {
  DirectStream stream(std::size_t{64} << 20);
  stream.state.Take();
  const std::string large(std::size_t{16} << 20, 'x');
  EXPECT_TRUE(stream.state.Write(large));
  EXPECT_TRUE(stream.state.Write("after"));
  EXPECT_EQ(stream.wakes.count, 1);
  const std::string sent = stream.Received();
  const ExchangeState::Output rest = stream.state.Take();
  EXPECT_EQ(sent + rest.framed, "1000000\r\n" + large + "\r\n");
  EXPECT_EQ(rest.events, "after");
}

TEST(ExchangeState, AHeldOrDetachedStreamSendsNothingByItself) {
  DirectStream stream(1000);
  stream.state.Take();
  stream.state.HoldDirect();
  EXPECT_TRUE(stream.state.Write("a"));
  EXPECT_EQ(stream.wakes.count, 1);
  EXPECT_EQ(stream.state.Take().events, "a");
  stream.state.Delivered();
  stream.state.Take();
  stream.state.Detach();
  stream.state.Write("b");
  EXPECT_EQ(stream.Received(), "");
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

TEST(ExchangeState, TheEndOfARequestIsWhatWasSaidLast) {
  Wakes wakes;
  ExchangeState answered(10, wakes.Counter());
  answered.Ended({.finish_reason = "eos", .tokens = TokenCounts{.prompt = 3, .generated = 4}});
  answered.Respond({500, "", {}, "", RequestFailure{"internal", "why"}});
  const RequestEnd end = answered.TakeEnd();
  EXPECT_EQ(end.finish_reason, "eos");
  EXPECT_EQ(end.tokens->generated, 4U);
  EXPECT_EQ(end.failure->kind, "internal");
  // Dropped by the application.
  ExchangeState dropped(10, wakes.Counter());
  dropped.Abandon();
  EXPECT_EQ(dropped.TakeEnd().failure->kind, "internal");
}

TEST(ExchangeState, OnCloseRunsOnceAndNotAfterTheEnd) {
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
