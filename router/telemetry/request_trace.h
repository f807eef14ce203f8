// The spans of one HTTP request: the request itself and, for each of its generations, queue time,
// prefill and decode. A request whose trace is not sampled has no spans.
//
// Not thread-safe: the Run of the request uses it under the mutex of that Run.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "router/engine.h"
#include "router/telemetry/span.h"

namespace penstock::router {

class RequestTrace {
 public:
  // Sets the router's span as the trace of each generation, so that the shards log it. Without a
  // sink keeps the client's.
  static RequestTrace Begin(std::shared_ptr<SpanSink> sink,
                            std::vector<GenerationRequest>& requests, Time arrived);

  bool wanted() const { return sink_ != nullptr; }
  // The time of the first candidate by kind, without what is zero.
  void Times(const TimeTotals& totals);
  void Ended(std::size_t candidate, const GenerationEnd& end, std::string_view reason);
  // Gives all spans to the sink. `error`: empty if the request succeeded.
  void Finish(std::string_view error);

 private:
  Span Part(std::string_view name, Time begin, Time end, std::size_t candidate) const;

  std::shared_ptr<SpanSink> sink_;  // null: not traced, or finished
  Span request_;
  std::vector<Span> parts_;
};

}  // namespace penstock::router
