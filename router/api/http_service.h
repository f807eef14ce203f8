// The whole HTTP side of the router in one object: listener, dialects and handlers on top of an
// Engine.
//
//   HttpService http(http_options, api_options, dialect_options, engine, metrics);
//   auto port = http.Start();          // bound port, or why not
//   …
//   http.Stop(std::chrono::seconds(60));  // drains, see HttpServer::Stop
//
// `engine` and `metrics` must outlive it. Stop the HTTP side first and the engine after it. Stop
// returns when no connection is left. After that no sink that the engine still holds calls into the
// HTTP side. Start logs a warning if it listens beyond loopback without a key.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "common/time.h"
#include "router/api/api.h"
#include "router/api/context.h"
#include "router/http/server.h"

namespace penstock::router {

class HttpService {
 public:
  HttpService(HttpOptions http, ApiOptions api, const DialectOptions& dialects, Engine& engine,
              Metrics& metrics);
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  absl::StatusOr<std::uint16_t> Start();
  void Stop(Duration drain) { server_.Stop(drain); }

 private:
  bool warn_;
  ApiContext context_;
  Api api_;
  HttpServer server_;
};

}  // namespace penstock::router
