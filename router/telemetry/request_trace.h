// The spans of one HTTP request: the request as a whole and, for each of its generations, the time
// in the queue, the prefill and the decode. Nothing is kept of a request whose trace is not
// sampled, and nothing is measured that was not known anyway.
//
// Owner: the run of the request, under its mutex.
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
  // Gives each request the router's own span as its trace, so that the shards name it. Without a
  // sink the client's own is passed on.
  static RequestTrace Begin(std::shared_ptr<SpanSink> sink,
                            std::vector<GenerationRequest>& requests, Time arrived);

  void Ended(std::size_t candidate, const GenerationEnd& end, std::string_view reason);
  // Hands all spans to the sink. `error`: empty when the request was answered well.
  void Finish(std::string_view error);

 private:
  Span Part(std::string_view name, Time begin, Time end, std::size_t candidate) const;

  std::shared_ptr<SpanSink> sink_;  // null: not traced, or finished
  Span request_;
  std::vector<Span> parts_;
};

}  // namespace penstock::router
