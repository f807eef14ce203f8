#include "router/http/large_requests.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "tests/unit/router/http/server_fixture.h"
#include "tests/unit/router/support/raw_client.h"

namespace penstock::router {
namespace {

using testing::Get;
using testing::Post;
using testing::RawClient;

constexpr std::size_t kMoreThanThreads = 8;
constexpr std::chrono::seconds kDeadline{10};

std::shared_ptr<ExchangeState> MakeState() {
  return std::make_shared<ExchangeState>(1024, [] {});
}

class LargeRequestsTest : public ::testing::Test {
 protected:
  // One that keeps its thread until the gate opens.
  LargeRequests::Work Stuck() {
    return {[this](HttpRequest, std::shared_ptr<Exchange>) {
              ++begun_;
              begun_.notify_all();
              opened_.wait();
              ++ended_;
            },
            {},
            MakeState(),
            nullptr};
  }
  void BusyAllThreads() {
    for (std::size_t i = 0; i < kMoreThanThreads; ++i) requests_->Add(Stuck());
    begun_.wait(0);
  }

  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  std::atomic<int> begun_{0};
  std::atomic<int> ended_{0};
  std::optional<LargeRequests> requests_{std::in_place};
};

TEST_F(LargeRequestsTest, ARequestWhoseClientLeftIsNotHandled) {
  BusyAllThreads();
  std::atomic<bool> handled = false;
  const auto gone = MakeState();
  auto memory = std::make_shared<const int>(0);
  requests_->Add(
      {[&](HttpRequest, std::shared_ptr<Exchange>) { handled = true; }, {}, gone, memory});
  EXPECT_EQ(memory.use_count(), 2);  // what waits is counted
  gone->Close(CloseReason::kClientGone);
  std::promise<std::string> body;
  requests_->Add({[&](HttpRequest request, std::shared_ptr<Exchange>) {
                    body.set_value(std::move(request.body));
                  },
                  {{}, "next"},
                  MakeState(),
                  nullptr});
  gate_.set_value();
  auto next = body.get_future();
  ASSERT_EQ(next.wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(next.get(), "next");
  requests_.reset();
  EXPECT_FALSE(handled);
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_F(LargeRequestsTest, TheDestructorWaitsForRunningRequests) {
  BusyAllThreads();
  std::thread opener([this] { gate_.set_value(); });
  requests_.reset();
  opener.join();
  EXPECT_GE(begun_, 1);
  EXPECT_EQ(begun_, ended_);
}

TEST_F(LargeRequestsTest, TheDestructorDropsWaitingRequests) {
  BusyAllThreads();
  auto memory = std::make_shared<const int>(0);
  for (std::size_t i = 0; i < kMoreThanThreads; ++i) {
    LargeRequests::Work waits = Stuck();
    waits.memory = memory;
    requests_->Add(std::move(waits));
  }
  gate_.set_value();
  requests_.reset();
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_F(LargeRequestsTest, ThreadsHaveALowPriority) {
  std::promise<int> nice;
  requests_->Add({[&nice](HttpRequest, std::shared_ptr<Exchange>) {
                    nice.set_value(::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())));
                  },
                  {},
                  MakeState(),
                  nullptr});
  EXPECT_GT(nice.get_future().get(), ::getpriority(PRIO_PROCESS, 0));
  gate_.set_value();
}

// An application whose handler computes for as long as the test wants.
class SlowApplication final : public Application {
 public:
  explicit SlowApplication(std::shared_future<void> gate) : gate_(std::move(gate)) {}
  RouteMatch Match(const RequestHead& head) const override {
    RouteMatch match;
    match.handle = [gate = gate_, slow = head.path == "/slow"](HttpRequest request,
                                                               std::shared_ptr<Exchange> exchange) {
      if (slow) gate.wait();
      exchange->Respond({200, "text/plain", {}, std::to_string(request.body.size())});
    };
    return match;
  }
  HttpResponse Refuse(const RequestHead&, const HttpFailure& failure) const override {
    return {failure.status, "text/plain", {}, failure.message};
  }

 private:
  std::shared_future<void> gate_;
};

TEST(LargeRequestsInServerTest, TheyDelayNeitherOtherRequestsNorRefusals) {
  std::promise<void> gate;
  const SlowApplication application(gate.get_future().share());
  HttpOptions options;
  options.port = 0;
  options.io_threads = 1;
  options.limits.body_bytes = 1 << 20;
  Metrics metrics;
  HttpServer server(options, application, metrics);
  const auto port = server.Start();
  ASSERT_TRUE(port.ok()) << port.status();
  RawClient slow(*port);
  slow.Send(Post("/slow", std::string(LargeRequests::kBytes, 'x')));
  // The only io thread still serves small requests, and refuses large ones by their length.
  EXPECT_EQ(RawClient::Fetch(*port, Post("/", "abc")).body, "3");
  EXPECT_EQ(RawClient::Fetch(*port, Post("/", std::string((1 << 20) + 1, 'x'))).status, 413);
  EXPECT_TRUE(slow.StaysSilent(std::chrono::milliseconds(1)));
  gate.set_value();
  EXPECT_EQ(slow.ReadResponse().body, std::to_string(LargeRequests::kBytes));
}

}  // namespace
}  // namespace penstock::router
