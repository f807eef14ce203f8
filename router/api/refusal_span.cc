#include "router/api/refusal_span.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "router/telemetry/trace_context.h"

namespace penstock::router {
namespace {

constexpr int kHttpBadRequest = 400;
constexpr std::size_t kShownError = 300;

// The span of a request whose head has been read. nullopt: its trace is not sampled.
std::optional<Span> BeginSpan(const RequestHead& head, std::string_view route) {
  Span span;
  if (auto given = ParseTraceContext(head.Find("traceparent"), head.Find("tracestate"))) {
    span.parent = given->span;
    span.context = *std::move(given);
  } else {
    span.context.trace = NewTraceId();
    span.context.sampled = true;
  }
  if (!span.context.sampled) return std::nullopt;
  span.context.span = NewSpanId();
  span.name = head.method + " " + std::string(route);
  span.is_server = true;
  span.begin = head.arrived;
  span.attributes.push_back({"penstock.request_id", head.request_id});
  return span;
}

void Give(SpanSink& sink, Span span, int status, std::string_view error) {
  span.end = SteadyNow();
  span.attributes.push_back({"http.response.status_code", std::int64_t{status}});
  span.error = std::string(error.substr(0, kShownError));
  if (span.error.empty()) span.error = "status " + std::to_string(status);
  std::vector<Span> spans;
  spans.push_back(std::move(span));
  sink.Take(std::move(spans));
}

class SpannedExchange final : public Exchange {
 public:
  SpannedExchange(std::shared_ptr<Exchange> exchange, std::shared_ptr<SpanSink> sink, Span span)
      : exchange_(std::move(exchange)), sink_(std::move(sink)), span_(std::move(span)) {}

  void AddHeaders(std::vector<Header> headers) override {
    exchange_->AddHeaders(std::move(headers));
  }
  void Respond(HttpResponse response) override {
    if (response.status >= kHttpBadRequest) Refused(response.status, response.body);
    exchange_->Respond(std::move(response));
  }
  void StartStream(HttpResponse head) override { exchange_->StartStream(std::move(head)); }
  bool Write(std::string_view events) override {
    // A handler that writes a stream itself reports an error in it.
    Refused(200, events);
    return exchange_->Write(events);
  }
  void Finish() override { exchange_->Finish(); }
  void OnClose(std::function<void(CloseReason)> callback) override {
    exchange_->OnClose(std::move(callback));
  }
  void Ended(RequestEnd end) override { exchange_->Ended(std::move(end)); }

  void Leave() { ended_ = true; }

 private:
  void Refused(int status, std::string_view error) {
    if (!ended_.exchange(true)) Give(*sink_, std::move(span_), status, error);
  }

  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<SpanSink> sink_;
  Span span_;
  std::atomic<bool> ended_{false};
};

}  // namespace

void TraceRefusal(SpanSink& sink, const RequestHead& head, std::string_view route, int status,
                  std::string_view error) {
  if (auto span = BeginSpan(head, route)) Give(sink, *std::move(span), status, error);
}

std::shared_ptr<Exchange> WithRefusalSpan(std::shared_ptr<Exchange> exchange,
                                          std::shared_ptr<SpanSink> sink, const RequestHead& head,
                                          std::string_view route) {
  auto span = BeginSpan(head, route);
  if (!span) return exchange;
  return std::make_shared<SpannedExchange>(std::move(exchange), std::move(sink), *std::move(span));
}

void LeaveSpanToRun(Exchange& exchange) {
  if (auto* spanned = dynamic_cast<SpannedExchange*>(&exchange)) spanned->Leave();
}

}  // namespace penstock::router
