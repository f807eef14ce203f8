#include "router/telemetry/otlp_exporter.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "otlp/v1/traces.grpc.pb.h"
#include "router/metrics/metrics.h"
#include "router/telemetry/span_to_otlp.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// A collector that records the names of spans and returns a given status.
class Collector final : public otlp::TraceService::Service {
 public:
  Collector() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Collector() override {
    Release();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  grpc::Status Export(grpc::ServerContext* context, const otlp::ExportTraceServiceRequest* request,
                      otlp::ExportTraceServiceResponse*) override {
    std::unique_lock lock(mutex_);
    ++calls_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_ || context->IsCancelled(); });
    if (!failures_.empty()) {
      const grpc::Status failure = failures_.front();
      failures_.pop_front();
      return failure;
    }
    for (const auto& resource : request->resource_spans()) {
      for (const auto& scope : resource.scope_spans()) {
        for (const auto& span : scope.spans()) names_.push_back(span.name());
      }
    }
    changed_.notify_all();
    return grpc::Status::OK;
  }

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void FailNext(grpc::StatusCode code) {
    const std::lock_guard lock(mutex_);
    failures_.emplace_back(code, "not now");
  }
  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  bool WaitFor(const std::function<bool(std::size_t calls, std::size_t spans)>& reached) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return reached(calls_, names_.size()); });
  }
  std::vector<std::string> names() {
    const std::lock_guard lock(mutex_);
    return names_;
  }
  std::size_t calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> names_;
  std::deque<grpc::Status> failures_;
  std::size_t calls_ = 0;
  bool held_ = false;
  std::unique_ptr<grpc::Server> server_;
};

std::vector<Span> Named(std::size_t count, const std::string& name = "s") {
  Span span;
  span.context = {NewTraceId(), NewSpanId(), true, ""};
  span.name = name;
  return std::vector<Span>(count, span);
}

OtlpOptions Quick(const std::string& endpoint) {
  OtlpOptions options;
  options.endpoint = endpoint;
  options.service_name = "test";
  options.batch_delay = milliseconds(1);
  options.retry_first = milliseconds(1);
  options.retry_longest = milliseconds(4);
  return options;
}

std::string Counted(const std::string& outcome, int count) {
  return "penstock_otlp_spans_total{outcome=\"" + outcome + "\"} " + std::to_string(count) + "\n";
}

TEST(OtlpExporter, SpansArriveInBatches) {
  Collector collector;
  Metrics metrics;
  OtlpOptions options = Quick(collector.endpoint());
  options.batch_delay = std::chrono::seconds(60);
  options.batch_spans = 100;
  OtlpExporter exporter(options, metrics);
  for (int i = 0; i < 20; ++i) exporter.Take(Named(10));
  EXPECT_TRUE(collector.WaitFor([](auto, std::size_t spans) { return spans == 200; }));
  EXPECT_LE(collector.calls(), 4U);
  exporter.Stop();
  EXPECT_THAT(metrics.Render(), HasSubstr(Counted("sent", 200)));
}

TEST(OtlpExporter, StopSendsWhatIsQueued) {
  Collector collector;
  Metrics metrics;
  OtlpOptions options = Quick(collector.endpoint());
  options.batch_delay = std::chrono::seconds(60);
  OtlpExporter exporter(options, metrics);
  exporter.Take(Named(3, "last"));
  exporter.Stop();
  EXPECT_EQ(collector.names(), std::vector<std::string>(3, "last"));
}

TEST(OtlpExporter, ABatchThatMayBeSentAgainIsNotLost) {
  Collector collector;
  Metrics metrics;
  for (int i = 0; i < 3; ++i) collector.FailNext(grpc::StatusCode::UNAVAILABLE);
  OtlpExporter exporter(Quick(collector.endpoint()), metrics);
  exporter.Take(Named(5));
  EXPECT_TRUE(collector.WaitFor([](auto, std::size_t spans) { return spans == 5; }));
  EXPECT_EQ(collector.calls(), 4U);
}

TEST(OtlpExporter, ARefusedBatchIsDroppedAndTheNextIsSent) {
  Collector collector;
  Metrics metrics;
  collector.FailNext(grpc::StatusCode::INVALID_ARGUMENT);
  OtlpExporter exporter(Quick(collector.endpoint()), metrics);
  exporter.Take(Named(5, "bad"));
  ASSERT_TRUE(collector.WaitFor([](std::size_t calls, auto) { return calls == 1; }));
  exporter.Take(Named(2, "good"));
  ASSERT_TRUE(collector.WaitFor([](auto, std::size_t spans) { return spans == 2; }));
  exporter.Stop();
  EXPECT_EQ(collector.names(), std::vector<std::string>(2, "good"));
  EXPECT_THAT(metrics.Render(), HasSubstr(Counted("failed", 5)));
}

TEST(OtlpExporter, AFullQueueDropsAndCounts) {
  Collector collector;
  Metrics metrics;
  OtlpOptions options = Quick(collector.endpoint());
  options.queue_spans = 8;
  collector.Hold();
  OtlpExporter exporter(options, metrics);
  exporter.Take(Named(1));
  ASSERT_TRUE(collector.WaitFor([](std::size_t calls, auto) { return calls == 1; }));
  exporter.Take(Named(5));
  exporter.Take(Named(5));  // three of them fit
  EXPECT_THAT(metrics.Render(), HasSubstr(Counted("dropped", 2)));
  collector.Release();
  EXPECT_TRUE(collector.WaitFor([](auto, std::size_t spans) { return spans == 9; }));
}

TEST(OtlpExporter, StopDoesNotWaitForACollectorThatHangs) {
  Collector collector;
  Metrics metrics;
  OtlpOptions options = Quick(collector.endpoint());
  options.flush = milliseconds(50);
  collector.Hold();
  OtlpExporter exporter(options, metrics);
  exporter.Take(Named(4));
  ASSERT_TRUE(collector.WaitFor([](std::size_t calls, auto) { return calls == 1; }));
  const auto before = std::chrono::steady_clock::now();
  exporter.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  EXPECT_THAT(metrics.Render(), HasSubstr(Counted("failed", 4)));
}

TEST(OtlpExporter, StopDoesNotWaitForAMissingCollector) {
  Metrics metrics;
  OtlpOptions options = Quick("http://127.0.0.1:1");
  options.retry_first = std::chrono::seconds(60);
  options.retry_longest = std::chrono::seconds(60);
  OtlpExporter exporter(options, metrics);
  exporter.Take(Named(4));
  const auto before = std::chrono::steady_clock::now();
  exporter.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  exporter.Take(Named(3));  // too late
  EXPECT_THAT(metrics.Render(), HasSubstr(Counted("sent", 0)));
  EXPECT_THAT(metrics.Render(), HasSubstr(Counted("failed", 4)));
  EXPECT_THAT(metrics.Render(), HasSubstr(Counted("dropped", 3)));
}

TEST(OtlpExporter, EndpointsAreCheckedByName) {
  for (const char* good : {"http://localhost:4317", "https://collector.example:443/",
                           "127.0.0.1:4317", "http://[::1]:4317"}) {
    EXPECT_TRUE(CheckOtlpEndpoint(good).ok()) << good;
  }
  for (const char* bad : {"", "http://", "localhost", "http://localhost", "localhost:", ":4317",
                          "ftp://host:1", "http://host:1/v1/traces", "host:123456", "host:x"}) {
    const absl::Status status = CheckOtlpEndpoint(bad);
    EXPECT_FALSE(status.ok()) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("otlp-endpoint")) << bad;
  }
}

TEST(SpanToOtlp, SteadyTimeBecomesTheTimeOfDay) {
  std::vector<Span> spans = Named(1);
  spans[0].begin = SteadyNow() - milliseconds(500);
  spans[0].end = SteadyNow();
  spans[0].error = "it broke";
  spans[0].attributes = {{"text", std::string("x")}, {"whole", std::int64_t{7}}, {"flag", true}};
  spans[0].is_server = true;
  OtlpOptions sender;
  sender.service_name = "service";
  sender.scheme = "https";
  const auto request = ToOtlp(spans, sender);
  const auto& sent = request.resource_spans(0).scope_spans(0).spans(0);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto wall = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  EXPECT_NEAR(static_cast<double>(sent.end_time_unix_nano()), static_cast<double>(wall), 5e9);
  EXPECT_GE(sent.end_time_unix_nano() - sent.start_time_unix_nano(), 500'000'000U);
  EXPECT_EQ(sent.trace_id().size(), 16U);
  EXPECT_EQ(sent.span_id().size(), 8U);
  EXPECT_EQ(sent.parent_span_id(), "");
  EXPECT_EQ(sent.status().code(), 2);
  EXPECT_EQ(sent.status().message(), "it broke");
  EXPECT_EQ(sent.attributes(0).key(), "url.scheme");
  EXPECT_EQ(sent.attributes(0).value().string_value(), "https");
  EXPECT_EQ(sent.attributes(2).value().int_value(), 7);
  EXPECT_EQ(request.resource_spans(0).resource().attributes(0).value().string_value(), "service");
}

}  // namespace
}  // namespace penstock::router
