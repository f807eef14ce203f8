#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "router/api/console/dialect.h"
#include "router/api/sse.h"
#include "router/json/writer.h"

namespace penstock::router::console {
namespace {

std::int64_t Microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

void AppendPart(std::string& out, const StepPart& part) {
  json::AppendObject(out, "slot", part.slot.value(), "rows", part.rows, "prompt", part.prompt);
}

void AppendStep(std::string& out, const StepView& step) {
  json::AppendObject(out, "group", step.group.value(), "step", step.step.value(), "predicted_us",
                     Microseconds(step.predicted), "taken_us", Microseconds(step.taken), "parts",
                     json::Array(step.parts, AppendPart), "parts_left_out", step.parts_left_out);
}

// The counts that are not zero, by reason.
void AppendReasons(std::string& out, const StepReport& report) {
  out += '{';
  for (std::size_t i = 0; i < report.waiting_for.size(); ++i) {
    if (report.waiting_for[i] == 0) continue;
    const auto reason = static_cast<Budget>(i);
    json::AppendMembers(out, reason == Budget::kNone ? "not_examined" : BudgetName(reason),
                        report.waiting_for[i]);
  }
  out += '}';
}

struct Viewer {
  std::string tenant;
  bool admin = false;

  bool Sees(std::string_view other) const { return admin || other == tenant; }
};

// A request of another key is shown without its ids.
void AppendWaiting(std::string& out, const WaitingView& waiting, const Viewer& viewer, Time now) {
  out += '{';
  if (viewer.Sees(waiting.tenant)) {
    json::AppendMembers(out, "request", waiting.request.value(), "client_id", waiting.client_id);
  }
  json::AppendMembers(out, "reason", TimeKindName(waiting.kind), "waits_us",
                      Microseconds(now - waiting.since));
  if (waiting.behind && viewer.Sees(waiting.behind_tenant)) {
    json::AppendMembers(out, "behind", waiting.behind->value());
  }
  out += '}';
}

void AppendHour(std::string& out, const TimeTotals& totals) {
  out += '{';
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i] == Duration{0}) continue;
    json::AppendMembers(out, TimeKindName(static_cast<TimeKind>(i)), Microseconds(totals[i]));
  }
  out += '}';
}

std::string TextOf(const StepReport& report, const Viewer& viewer) {
  const Time now = SteadyNow();
  std::string out = "{";
  json::AppendMembers(out, "running", report.running, "waiting", report.waiting, "waiting_for",
                      [&report](std::string& text) { AppendReasons(text, report); });
  json::AppendMembers(out, "blocks",
                      json::Object("free", report.blocks_free, "used", report.blocks_used, "cached",
                                   report.blocks_cached, "retiring", report.blocks_retiring));
  const auto append = [&](std::string& text, const WaitingView& waiting) {
    AppendWaiting(text, waiting, viewer, now);
  };
  json::AppendMembers(out, "queue", json::Array(report.queue, append), "queue_left_out",
                      report.queue_left_out);
  json::AppendMembers(out, "last_hour_us",
                      [&](std::string& text) { AppendHour(text, report.last_hour); });
  json::AppendMembers(out, "steps", json::Array(report.steps, AppendStep), "steps_left_out",
                      report.steps_left_out);
  return out + "}";
}

class Reader final : public StepSink {
 public:
  Reader(std::shared_ptr<Exchange> exchange, Viewer viewer)
      : exchange_(std::move(exchange)), viewer_(std::move(viewer)) {}
  ~Reader() override { exchange_->Finish(); }

  bool OnSteps(const StepReport& report) override {
    std::string event;
    sse::AppendEvent(event, TextOf(report, viewer_));
    return exchange_->Write(event);
  }
  bool HasLeft() const override { return left_; }
  void Leave() {
    left_ = true;
    exchange_->Finish();
  }

 private:
  std::atomic<bool> left_ = false;
  const std::shared_ptr<Exchange> exchange_;
  const Viewer viewer_;
};

}  // namespace

void Events(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const auto reader = std::make_shared<Reader>(
      exchange, Viewer{request.head.tenant, context.options.IsAdmin(request.head.tenant)});
  exchange->OnClose([weak = std::weak_ptr(reader)](CloseReason) {
    if (const auto closed = weak.lock()) closed->Leave();
  });
  exchange->StartStream(sse::Head());
  if (context.engine.Watch(reader)) return;
  std::string event;
  sse::AppendEvent(event, "{\"error\":\"the live view has as many readers as it takes\"}");
  exchange->Write(event);
}

}  // namespace penstock::router::console
