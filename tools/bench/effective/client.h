// Talks to one server with effective-batching's routes. One thread; blocks until it is done.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/effective/trace.h"

namespace penstock::bench::effective {

struct Address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8500;
  std::string api_key = {};
  std::chrono::milliseconds timeout{600'000};  // of one request
};

// The outcome of one request of a trace.
struct Outcome {
  std::uint64_t request = 0;  // the server's number
  double latency = 0;         // seconds from the intended arrival to the whole answer
  double first_token = 0;     // seconds from the intended arrival
  double server_latency = 0;  // seconds from the request's arrival there
  std::uint32_t num_tokens = 0;
  std::vector<std::int64_t> tokens;  // ids that the server generated
  std::string error;                 // empty: answered
};

struct TraceRun {
  std::vector<Outcome> outcomes;  // in the trace's order
  double seconds = 0;             // first arrival to the last answer
};

struct Answer {
  int status = 0;
  std::string body;
};

// Describes an unexpected answer, such as "status 502 without a body".
std::string Description(const Answer& answer);

class Client {
 public:
  explicit Client(Address address);
  ~Client();

  // Unavailable if the server or its address cannot be reached.
  absl::StatusOr<Answer> Fetch(std::string_view method, std::string_view target,
                               const std::string& body = {});
  // Sends every request at its time, however many are open. Says on standard error what it waits
  // for, with a progress bar on a terminal.
  absl::StatusOr<TraceRun> Replay(const std::vector<TraceRequest>& trace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::bench::effective
