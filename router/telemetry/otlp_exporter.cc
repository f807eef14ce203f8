#include "router/telemetry/otlp_exporter.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "common/bad_option.h"
#include "common/log.h"
#include "otlp/v1/traces.grpc.pb.h"
#include "router/metrics/metrics.h"
#include "router/telemetry/span_to_otlp.h"

namespace penstock::router {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Endpoint {
  std::string address;  // HOST:PORT
  bool tls = false;
};

std::optional<Endpoint> ParseEndpoint(std::string_view text) {
  Endpoint endpoint;
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  if (text.starts_with(kPlain)) {
    text.remove_prefix(kPlain.size());
  } else if (text.starts_with(kTls)) {
    text.remove_prefix(kTls.size());
    endpoint.tls = true;
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || colon + 1 == text.size()) return std::nullopt;
  if (text.find('/') != text.npos) return std::nullopt;
  const std::string_view port = text.substr(colon + 1);
  if (port.size() > 5 || port.find_first_not_of("0123456789") != port.npos) return std::nullopt;
  endpoint.address = text;
  return endpoint;
}

std::unique_ptr<otlp::TraceService::Stub> Connect(const std::string& text) {
  const Endpoint endpoint = ParseEndpoint(text).value_or(Endpoint{text, false});
  const auto credentials = endpoint.tls ? grpc::SslCredentials(grpc::SslCredentialsOptions())
                                        : grpc::InsecureChannelCredentials();
  return otlp::TraceService::NewStub(grpc::CreateChannel(endpoint.address, credentials));
}

// The status codes after which OTLP allows to send the same batch again.
bool MayRetry(grpc::StatusCode code) {
  using enum grpc::StatusCode;
  constexpr std::array kAllowed = {CANCELLED,    DEADLINE_EXCEEDED, ABORTED,
                                   OUT_OF_RANGE, UNAVAILABLE,       DATA_LOSS};
  return std::ranges::find(kAllowed, code) != kAllowed.end();
}

}  // namespace

absl::Status CheckOtlpEndpoint(const std::string& endpoint) {
  if (ParseEndpoint(endpoint)) return absl::OkStatus();
  return BadOption("otlp-endpoint", endpoint, "HOST:PORT, http://HOST:PORT or https://HOST:PORT");
}

class OtlpExporter::Impl {
 public:
  Impl(OtlpOptions options, Metrics& metrics)
      : options_(std::move(options)),
        metrics_(metrics),
        stub_(Connect(options_.endpoint)),
        thread_([this] { Run(); }) {}

  void Take(std::vector<Span> spans) {
    std::size_t fit = 0;
    bool batch_full = false;
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) fit = std::min(spans.size(), options_.queue_spans - queue_.size());
      const bool first = queue_.empty() && fit > 0;
      std::move(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(fit),
                std::back_inserter(queue_));
      if (first) send_at_ = SteadyClock::now() + options_.batch_delay;
      batch_full = first || queue_.size() >= options_.batch_spans;
    }
    if (batch_full) news_.notify_one();
    metrics_.spans().Count("dropped", spans.size() - fit);
  }

  void Stop() {
    {
      std::unique_lock lock(mutex_);
      if (!stopping_) stop_until_ = SteadyClock::now() + options_.flush;
      stopping_ = true;
      news_.notify_one();
      if (!ended_.wait_until(lock, stop_until_, [this] { return over_; }) && call_ != nullptr) {
        call_->TryCancel();
      }
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    std::vector<Span> batch;
    while (NextBatch(batch)) {
      const grpc::Status status = Send(batch);
      if (status.ok()) {
        metrics_.spans().Count("sent", batch.size());
        Recovered();
        batch.clear();
      } else if (!Wait(status)) {
        metrics_.spans().Count("failed", batch.size());
        batch.clear();
      }
    }
    const std::lock_guard lock(mutex_);
    metrics_.spans().Count("dropped", batch.size() + queue_.size());
    queue_.clear();
    over_ = true;
    ended_.notify_all();
  }

  // Gets the failed batch again, or the queued spans when they are enough or old enough. False:
  // end.
  bool NextBatch(std::vector<Span>& batch) {
    std::unique_lock lock(mutex_);
    if (!batch.empty()) return !stopping_ || SteadyClock::now() < stop_until_;
    news_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    news_.wait_until(lock, send_at_,
                     [this] { return stopping_ || queue_.size() >= options_.batch_spans; });
    if (queue_.empty() || (stopping_ && SteadyClock::now() >= stop_until_)) return false;
    const std::size_t count = std::min(queue_.size(), options_.batch_spans);
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
    batch.assign(std::move_iterator(queue_.begin()), std::move_iterator(end));
    queue_.erase(queue_.begin(), end);
    return true;
  }

  grpc::Status Send(const std::vector<Span>& batch) {
    const otlp::ExportTraceServiceRequest request = ToOtlp(batch, options_);
    otlp::ExportTraceServiceResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options_.call_timeout);
    {
      const std::lock_guard lock(mutex_);
      call_ = &context;
    }
    const grpc::Status status = stub_->Export(&context, request, &response);
    const std::lock_guard lock(mutex_);
    call_ = nullptr;
    return status;
  }

  void Recovered() {
    if (std::exchange(retry_, {}) == std::chrono::milliseconds(0)) return;
    log::Info("traces reach " + options_.endpoint + " again");
  }

  // Waits after a failure until the next try. False: do not send this batch again.
  bool Wait(const grpc::Status& status) {
    if (retry_ == std::chrono::milliseconds(0)) {
      log::Warn("traces do not reach " + options_.endpoint + ": " + status.error_message());
    }
    retry_ = std::clamp(2 * retry_, options_.retry_first, options_.retry_longest);
    std::unique_lock lock(mutex_);
    if (!MayRetry(status.error_code()) || stopping_) return false;
    news_.wait_for(lock, retry_, [this] { return stopping_; });
    return true;
  }

  const OtlpOptions options_;
  Metrics& metrics_;
  const std::unique_ptr<otlp::TraceService::Stub> stub_;
  std::chrono::milliseconds retry_{0};  // for the thread only; 0 while the collector answers

  std::mutex mutex_;
  std::condition_variable news_;
  std::condition_variable ended_;
  std::deque<Span> queue_;
  SteadyClock::time_point send_at_;      // of the first in the queue
  grpc::ClientContext* call_ = nullptr;  // in progress
  bool stopping_ = false;
  SteadyClock::time_point stop_until_{};
  bool over_ = false;

  std::thread thread_;  // last: uses all of the above
};

OtlpExporter::OtlpExporter(OtlpOptions options, Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(options), metrics)) {}
OtlpExporter::~OtlpExporter() { Stop(); }
void OtlpExporter::Take(std::vector<Span> spans) { impl_->Take(std::move(spans)); }
void OtlpExporter::Stop() { impl_->Stop(); }

}  // namespace penstock::router
