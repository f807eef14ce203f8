#include "router/telemetry/request_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace penstock::router {
namespace {

using std::chrono::milliseconds;

class KeptSpans final : public SpanSink {
 public:
  void Take(std::vector<Span> spans) override {
    ++calls;
    for (Span& span : spans) by_name.emplace(span.name, std::move(span));
  }
  int calls = 0;
  std::multimap<std::string, Span> by_name;
};

std::vector<GenerationRequest> Requests(std::size_t count, std::optional<TraceContext> trace) {
  GenerationRequest request;
  request.client_id = "req-1";
  request.operation = "generate";
  request.trace = std::move(trace);
  return std::vector<GenerationRequest>(count, request);
}

TraceContext FromClient(bool sampled) { return {NewTraceId(), NewSpanId(), sampled, "vendor=1"}; }

GenerationEnd EndAfter() {
  GenerationEnd end;
  end.generated_tokens = 7;
  end.prompt_tokens = 3;
  end.timings = {milliseconds(1), milliseconds(20), milliseconds(300), milliseconds(61),
                 milliseconds(321)};
  return end;
}

template <class T>
T Value(const Span& span, std::string_view key) {
  for (const SpanAttribute& attribute : span.attributes) {
    if (attribute.key == key) return std::get<T>(attribute.value);
  }
  ADD_FAILURE() << "no attribute " << key;
  return T{};
}

TEST(RequestTrace, PartsFollowEachOtherInsideTheRequest) {
  const auto sink = std::make_shared<KeptSpans>();
  const TraceContext client = FromClient(true);
  auto requests = Requests(1, client);
  auto trace = RequestTrace::Begin(sink, requests, SteadyNow() - milliseconds(400));
  trace.Ended(0, EndAfter(), "length");
  trace.Finish("");

  ASSERT_EQ(sink->by_name.size(), 4U);
  const Span& request = sink->by_name.find("generate")->second;
  EXPECT_TRUE(request.is_server);
  EXPECT_EQ(request.parent, client.span);
  EXPECT_EQ(request.context.trace, client.trace);
  EXPECT_EQ(request.context.state, "vendor=1");
  EXPECT_EQ(request.error, "");
  EXPECT_EQ(Value<std::string>(request, "penstock.request_id"), "req-1");
  EXPECT_EQ(Value<std::int64_t>(request, "gen_ai.usage.output_tokens"), 7);
  EXPECT_EQ(Value<std::string>(request, "queue_time"), "20.000000ms");
  const Span& queue = sink->by_name.find("queue")->second;
  const Span& prefill = sink->by_name.find("prefill")->second;
  const Span& decode = sink->by_name.find("decode")->second;
  for (const Span* part : {&queue, &prefill, &decode}) {
    EXPECT_EQ(part->parent, request.context.span);
    EXPECT_EQ(part->context.trace, client.trace);
    EXPECT_FALSE(part->is_server);
  }
  EXPECT_LE(request.begin, queue.begin);
  EXPECT_EQ(queue.end - queue.begin, milliseconds(20));
  EXPECT_EQ(queue.end, prefill.begin);
  EXPECT_EQ(prefill.end - prefill.begin, milliseconds(40));
  EXPECT_EQ(prefill.end, decode.begin);
  EXPECT_EQ(decode.end - decode.begin, milliseconds(260));
  EXPECT_LE(decode.end, request.end);
}

TEST(RequestTrace, TheShardsGetTheRoutersSpan) {
  const auto sink = std::make_shared<KeptSpans>();
  const TraceContext client = FromClient(true);
  auto requests = Requests(2, client);
  auto trace = RequestTrace::Begin(sink, requests, SteadyNow());
  trace.Finish("");
  const Span& request = sink->by_name.find("generate")->second;
  for (const GenerationRequest& sent : requests) {
    EXPECT_EQ(sent.trace->trace, client.trace);
    EXPECT_EQ(sent.trace->span, request.context.span);
  }
}

TEST(RequestTrace, ARequestWithoutATraceStartsOne) {
  const auto sink = std::make_shared<KeptSpans>();
  auto requests = Requests(1, std::nullopt);
  auto trace = RequestTrace::Begin(sink, requests, SteadyNow());
  trace.Finish("the model is overloaded");
  const Span& request = sink->by_name.find("generate")->second;
  EXPECT_EQ(request.parent, SpanId{});
  EXPECT_NE(request.context.trace, TraceId{});
  EXPECT_EQ(request.error, "the model is overloaded");
}

TEST(RequestTrace, AnUnsampledTraceIsPassedOnButNotExported) {
  const auto sink = std::make_shared<KeptSpans>();
  const TraceContext client = FromClient(false);
  auto requests = Requests(1, client);
  auto trace = RequestTrace::Begin(sink, requests, SteadyNow());
  trace.Ended(0, EndAfter(), "length");
  trace.Finish("");
  EXPECT_EQ(sink->calls, 0);
  EXPECT_EQ(requests[0].trace->trace, client.trace);
  EXPECT_FALSE(requests[0].trace->sampled);
}

TEST(RequestTrace, WithoutASinkTheClientsTraceStays) {
  const TraceContext client = FromClient(true);
  auto requests = Requests(1, client);
  auto trace = RequestTrace::Begin(nullptr, requests, SteadyNow());
  trace.Finish("");
  EXPECT_EQ(requests[0].trace->span, client.span);
}

TEST(RequestTrace, FinishingTwiceSendsOnce) {
  const auto sink = std::make_shared<KeptSpans>();
  auto requests = Requests(1, std::nullopt);
  auto trace = RequestTrace::Begin(sink, requests, SteadyNow());
  trace.Finish("");
  trace.Finish("again");
  EXPECT_EQ(sink->calls, 1);
}

TEST(RequestTrace, NonZeroTimesBecomeAttributesInMilliseconds) {
  const auto sink = std::make_shared<KeptSpans>();
  auto requests = Requests(1, std::nullopt);
  auto trace = RequestTrace::Begin(sink, requests, SteadyNow());
  TimeTotals totals{};
  totals[static_cast<std::size_t>(TimeKind::kUpload)] = std::chrono::microseconds(1500);
  totals[static_cast<std::size_t>(TimeKind::kDecode)] = milliseconds(260);
  totals[static_cast<std::size_t>(QueueFor(Budget::kBlocks))] = milliseconds(20);
  trace.Times(totals);
  trace.Ended(0, EndAfter(), "length");
  trace.Finish("");
  const Span& request = sink->by_name.find("generate")->second;
  EXPECT_EQ(Value<double>(request, "penstock.time_ms.upload"), 1.5);
  EXPECT_EQ(Value<double>(request, "penstock.time_ms.decode"), 260);
  EXPECT_EQ(Value<double>(request, "penstock.time_ms.queue_blocks"), 20);
  const auto is_time = [](const SpanAttribute& attribute) {
    return attribute.key.starts_with("penstock.time_ms.");
  };
  EXPECT_EQ(std::ranges::count_if(request.attributes, is_time), 3) << "times of zero are left out";
  for (const char* part : {"queue", "prefill", "decode"}) {
    EXPECT_EQ(std::ranges::count_if(sink->by_name.find(part)->second.attributes, is_time), 0);
  }
}

}  // namespace
}  // namespace penstock::router
