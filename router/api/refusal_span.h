// The span of a request that was refused before anything was generated for it: a wrong body, a
// missing key, no permit. Requests that run have theirs from RequestTrace.
#pragma once

#include <memory>
#include <string_view>

#include "router/http/application.h"
#include "router/telemetry/span.h"

namespace penstock::router {

// `status` and `error` are what was answered.
void TraceRefusal(SpanSink& sink, const RequestHead& head, std::string_view route, int status,
                  std::string_view error);

// The same way back, which hands a span to the sink when it is used to refuse.
std::shared_ptr<Exchange> WithRefusalSpan(std::shared_ptr<Exchange> exchange,
                                          std::shared_ptr<SpanSink> sink, const RequestHead& head,
                                          std::string_view route);

// A run has begun, whose own span tells of refusals, too.
void LeaveSpanToRun(Exchange& exchange);

}  // namespace penstock::router
