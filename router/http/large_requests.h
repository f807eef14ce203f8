// Requests with large bodies are handled by threads of their own: to parse megabytes on an io
// thread would hold up its other connections. Each of them has a BackThread, so that what a handler
// computes InBack does not hold up the steps of everybody's streams either, and what it does with
// locks has usual priority.
//
// First come, first served. Bound: what waits holds its reservation of the server's memory for
// bodies (HttpOptions::body_memory); without room there a body is not read. A request whose client
// has gone meanwhile is not handled.
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
  static constexpr std::size_t kBytes = std::size_t{1} << 20;  // bodies from here on are large

  struct Work {
    std::function<void(HttpRequest, std::shared_ptr<Exchange>)> handle;
    HttpRequest request;
    std::shared_ptr<ExchangeState> exchange;
    std::shared_ptr<const void> memory;  // what it reserved
  };

  LargeRequests();
  ~LargeRequests();  // lets what runs end, drops what waits
  LargeRequests(const LargeRequests&) = delete;
  LargeRequests& operator=(const LargeRequests&) = delete;

  void Add(Work work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Work> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last: they use the above
};

}  // namespace penstock::router
