// The span of a request that was refused before anything was generated for it: a wrong body, a
// missing key, no permit. RequestTrace makes the spans of requests that run.
#pragma once

#include <memory>
#include <string_view>

#include "router/http/application.h"
#include "router/telemetry/span.h"

namespace penstock::router {

// `status` and `error` are what was answered.
void TraceRefusal(SpanSink& sink, const RequestHead& head, std::string_view route, int status,
                  std::string_view error);

// An exchange that also hands a span to the sink when it answers an error.
std::shared_ptr<Exchange> WithRefusalSpan(std::shared_ptr<Exchange> exchange,
                                          std::shared_ptr<SpanSink> sink, const RequestHead& head,
                                          std::string_view route);

// A run has begun. From now on its own span records errors.
void LeaveSpanToRun(Exchange& exchange);

}  // namespace penstock::router
