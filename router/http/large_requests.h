// Handles requests with large bodies on a few threads of low priority. Parsing megabytes on an io
// thread would delay its other connections, and at the usual priority it would delay the streams.
//
// The order is first come, first served. What waits is bounded by the server's memory for bodies
// (HttpOptions::body_memory): each request holds its reservation until a thread takes it, and
// without room a body is not read. A request whose client has left is not handled.
//
// Thread-safe.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "router/http/application.h"
#include "router/http/exchange_state.h"

namespace penstock::router {

class LargeRequests {
 public:
  // A body of this size or more is large.
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

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
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::router
