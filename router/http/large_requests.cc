#include "router/http/large_requests.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/thread_name.h"
#include "common/thread_priority.h"
#include "router/http/event_loop.h"

namespace penstock::router {
namespace {

constexpr unsigned kMostThreads = 4;

void Handle(LargeRequests::Work work) {
  if (work.exchange->IsGone()) return;
  work.memory.reset();  // the connection holds its own reservation until the answer is sent
  work.handle(std::move(work.request), MakeExchange(std::move(work.exchange)));
}

}  // namespace

LargeRequests::LargeRequests() : guard_(context_.get_executor()) {
  const unsigned half = std::thread::hardware_concurrency() / 2;
  for (unsigned i = 0; i < std::clamp(half, 1U, kMostThreads); ++i) {
    threads_.emplace_back([this] {
      NameThread("large");
      UseBackgroundPriority();
      RunLoop(context_);
    });
  }
}

LargeRequests::~LargeRequests() {
  context_.stop();
  for (std::thread& thread : threads_) thread.join();
}

void LargeRequests::Add(Work work) {
  boost::asio::post(context_, [work = std::move(work)]() mutable { Handle(std::move(work)); });
}

}  // namespace penstock::router
