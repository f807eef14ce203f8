// The HTTP/1.1 listener: accepts connections, spreads them over the io threads, stops in order.
//
// Each io thread has an event loop of its own and owns the connections given to it; nothing polls.
// The application and the metrics must outlive the server.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "common/time.h"
#include "router/http/application.h"
#include "router/http/options.h"
#include "router/metrics/metrics.h"

namespace penstock::router {

class HttpServer {
 public:
  HttpServer(HttpOptions options, const Application& application, Metrics& metrics);
  ~HttpServer();  // Stop(0) if still running
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds, listens and starts the io threads; gives the bound port (the real one when 0 was asked
  // for). InvalidArgument names `hostname` or `port` when it cannot listen there. Once.
  absl::StatusOr<std::uint16_t> Start();

  // Stops accepting, closes idle connections and lets answers in progress end. After `drain` the
  // remaining answers are closed with CloseReason::kStopping. Two seconds later their connections
  // are cut. Blocks until all is over; not from an io thread. A second call returns at once.
  void Stop(Duration drain);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::router
