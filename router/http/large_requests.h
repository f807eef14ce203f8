// Handles requests with large bodies on a few threads of low priority. Parsing megabytes on an io
// thread would delay its other connections, and at the usual priority it would delay the streams.
//
// The order is first come, first served. What waits is bounded by the server's memory for bodies
// (HttpOptions::body_memory): each request holds its reservation until a thread takes it, and
// without room a body is not read. A request whose client has left is not handled.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "router/http/application.h"
#include "router/http/exchange_state.h"

namespace penstock::router {

class LargeRequests {
 public:
  static constexpr std::size_t kBytes = std::size_t{1}
                                        << 20;  // a body of this size or more is large

  struct Work {
    std::function<void(HttpRequest, std::shared_ptr<Exchange>)> handle;
    HttpRequest request;
    std::shared_ptr<ExchangeState> exchange;
    std::shared_ptr<const void> memory;  // its reservation
  };

  LargeRequests();
  ~LargeRequests();  // waits for running requests, drops waiting ones
  LargeRequests(const LargeRequests&) = delete;
  LargeRequests& operator=(const LargeRequests&) = delete;

  void Add(Work work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Work> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last: they use the members above
};

}  // namespace penstock::router
