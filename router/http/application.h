// The seam between bytes and dialects. The HTTP side reads and frames, the application decides and
// answers. Neither sees the other's libraries.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "router/http/message.h"

namespace penstock::router {

enum class CloseReason : std::uint8_t {
  kClientGone,  // closed, half-closed or reset; what is written from now on goes nowhere
  kTooSlow,     // over the stream buffer, or no progress for write_stall; as above
  kTimeout,     // total_timeout passed: the answer may still be ended
  kStopping,    // the server's drain time is over: as above
};

struct TokenCounts {
  std::uint64_t prompt = 0;
  std::uint64_t generated = 0;
  // The time from the request's arrival to its last token. Writing the answer is not included.
  Duration elapsed{0};
};

// How a generation ended, for the access log and the metrics.
struct RequestEnd {
  std::string_view finish_reason = {};  // of static storage; empty: it did not finish
  std::optional<RequestFailure> failure = {};
  std::optional<TokenCounts> tokens = {};
  // Called on an io thread when the client has the answer, or will not take it.
  std::function<void(Time)> delivered = {};
};

// The way back to one client. Either one Respond, or StartStream, any number of Write and one
// Finish. Thread-safe, never blocks, may outlive its connection and the server. If the last owner
// drops it without an answer, the client gets a 500 or a cut stream.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Headers that the answer carries after its own. Call before answering.
  virtual void AddHeaders(std::vector<Header> headers) = 0;

  // The whole answer.
  virtual void Respond(HttpResponse response) = 0;

  // A stream of events; `head.body` is not used. While it is silent, `head.filler` is sent.
  virtual void StartStream(HttpResponse head) = 0;
  // Whole events. Events that gather while the client reads are sent in one write. False: the
  // client has left or reads too slowly, and nothing more will be taken.
  virtual bool Write(std::string_view events) = 0;
  virtual void Finish() = 0;

  // `callback` runs at most once and never after the answer is complete. It runs on an io thread,
  // or inside OnClose if the exchange has closed already. It must not block. Set it once, before
  // answering.
  virtual void OnClose(std::function<void(CloseReason)> callback) = 0;

  // Says how the request ended. Call before the answer is complete or inside OnClose's callback;
  // the last call counts. Respond says it for an answer that has a failure.
  virtual void Ended(RequestEnd) {}
};

// What the application says about a request whose head has been read.
struct RouteMatch {
  std::string_view route = "unmatched";  // pattern, for metrics and logs; static storage
  bool quiet = false;                    // no access log (probes, metrics)
  std::string tenant;                    // name of the caller's key; becomes the head's
  std::optional<Duration> timeout;       // of the answer, if shorter than total_timeout
  std::optional<HttpResponse> refusal;   // answered at once; the body is not read
  std::function<void(HttpRequest, std::shared_ptr<Exchange>)> handle;  // set when not refused
};

// Called by the io threads at the same time: must be thread-safe and must not block.
class Application {
 public:
  virtual ~Application() = default;

  virtual RouteMatch Match(const RequestHead& head) const = 0;
  // The body of an answer to a broken, oversized or late request, in the dialect of its path.
  virtual HttpResponse Refuse(const RequestHead& head, const HttpFailure& failure) const = 0;
};

}  // namespace penstock::router
