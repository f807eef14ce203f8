#include "router/api/run.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "router/api/guard.h"
#include "router/api/hints.h"
#include "router/api/refusal_span.h"
#include "router/telemetry/request_trace.h"

namespace penstock::router {
namespace {

class Run;

// Candidates that a request answers at once: the results of a beam search.
std::size_t ResultsOf(const GenerationRequest& request) {
  return request.beams ? request.beams->results : 1;
}

// Generations that run at the same time.
std::uint32_t PermitsFor(const std::vector<GenerationRequest>& requests) {
  std::uint32_t permits = 0;
  for (std::size_t i = 0; i < requests.size(); i += ResultsOf(requests[i])) {
    permits += requests[i].beams ? requests[i].beams->width : 1;
  }
  return permits;
}

// The limit that an answer exceeded: the client's header or the option, 0: neither is known.
std::string DeadlineText(std::optional<Duration> header, Duration option) {
  const bool by_header = header && (option == Duration(0) || *header < option);
  const Duration limit = by_header ? *header : option;
  if (limit == Duration(0)) return "";
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  return std::string(": ") + (by_header ? "the header `x-request-timeout`" : "--request-timeout") +
         " allows " + std::to_string(ms) + " ms";
}

// Tells the engine when the client has the answer. It lives until then, unlike the run.
class Delivery {
 public:
  explicit Delivery(Engine& engine) : engine_(engine) {}

  void Add(RequestId id) {
    const std::lock_guard lock(mutex_);
    if (at_) return engine_.Delivered(id, *at_);
    ids_.push_back(id);
  }
  void Delivered(Time at) {
    const std::lock_guard lock(mutex_);
    at_ = at;
    for (const RequestId id : ids_) engine_.Delivered(id, at);
  }

 private:
  Engine& engine_;
  std::mutex mutex_;
  std::vector<RequestId> ids_;
  std::optional<Time> at_;
};

// The engine's handle of one candidate.
class CandidateSink final : public GenerationSink {
 public:
  CandidateSink(std::shared_ptr<Run> run, std::size_t index)
      : run_(std::move(run)), index_(index) {}
  bool OnEvents(std::vector<GenerationEvent> events) override;

 private:
  std::shared_ptr<Run> run_;
  std::size_t index_;
};

class Run final : public std::enable_shared_from_this<Run> {
 public:
  Run(ApiContext& context, std::weak_ptr<Exchange> exchange, RunPlan plan, RequestTrace trace,
      std::size_t candidates)
      : context_(context),
        errors_(*plan.errors),
        tenant_(plan.tenant),
        arrived_(plan.arrived),
        timeout_(plan.timeout),
        exchange_(exchange),
        trace_(std::move(trace)),
        writer_(std::move(plan.writer)),
        permit_(std::move(plan.permit)),
        candidates_(candidates),
        delivery_(std::make_shared<Delivery>(context.engine)) {}

  // Destroyed without an end: a defect of the engine. The exchange answers 500.
  ~Run() {
    if (over_) return;
    context_.metrics.requests().Failed(NameOf(ApiErrorKind::kInternal));
    trace_.Finish("the request was dropped");
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void OfferCancel() {
    writer_->OfferCancel([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Cancel();
    });
  }

  void Submit(Exchange& exchange, std::vector<GenerationRequest> requests) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      candidates_[i].max_new_tokens = requests[i].max_new_tokens;
    }
    for (std::size_t i = 0; i < requests.size();) {
      const std::size_t end = i + ResultsOf(requests[i]);
      const RequestId id = SubmitOne(std::move(requests[i]), i, end);
      delivery_->Add(id);
      bool over = false;
      {
        const std::lock_guard lock(mutex_);
        for (; i < end; ++i) candidates_[i].id = id;
        over = over_;
      }
      // Another candidate failed meanwhile.
      if (over) context_.engine.Cancel(id);
    }
    exchange.OnClose([weak = weak_from_this()](CloseReason reason) {
      if (const auto self = weak.lock()) self->Closed(reason);
    });
  }

  bool OnEvents(std::size_t index, std::vector<GenerationEvent> events) {
    std::vector<RequestId> losers;
    bool more = false;
    {
      const std::lock_guard lock(mutex_);
      now_ = SteadyNow();
      for (GenerationEvent& event : events) {
        if (over_) break;
        std::visit([&](auto& e) { On(index, e, losers); }, event);
      }
      if (!over_) more = writer_->Flush();
    }
    for (const RequestId id : losers) context_.engine.Cancel(id);
    return more;
  }

 private:
  // The candidates from `begin` to `end` are the results of one generation.
  RequestId SubmitOne(GenerationRequest request, std::size_t begin, std::size_t end) {
    std::vector<std::shared_ptr<GenerationSink>> sinks;
    for (std::size_t i = begin; i < end; ++i) {
      sinks.push_back(std::make_shared<CandidateSink>(shared_from_this(), i));
    }
    if (request.beams) return context_.engine.Search(std::move(request), std::move(sinks));
    return context_.engine.Submit(std::move(request), std::move(sinks.front()));
  }

  struct Candidate {
    std::optional<RequestId> id;
    std::optional<std::uint32_t> max_new_tokens;  // asked for
    std::uint32_t prompt_tokens = 0;
    std::uint32_t tokens = 0;
    Time last_token;
    bool ended = false;
  };

  void On(std::size_t index, const GenerationStart& start, std::vector<RequestId>&) {
    candidates_[index].prompt_tokens = start.prompt_tokens;
    context_.gate.Spend(tenant_, start.prompt_tokens, now_);
    const std::uint32_t total = context_.engine.Facts().max_total_tokens;
    const std::uint32_t room = total > start.prompt_tokens ? total - start.prompt_tokens : 0;
    context_.metrics.requests().MaxNewTokens(candidates_[index].max_new_tokens.value_or(room));
    writer_->Start(index, start);
  }

  void On(std::size_t index, GenerationToken& token, std::vector<RequestId>&) {
    Candidate& candidate = candidates_[index];
    if (candidate.tokens++ == 0) {
      context_.metrics.requests().FirstToken(now_ - arrived_);
    } else {
      context_.metrics.requests().InterToken(now_ - candidate.last_token);
    }
    candidate.last_token = now_;
    writer_->Token(index, std::move(token));
  }

  void On(std::size_t index, GenerationEnd& end, std::vector<RequestId>&) {
    Candidate& candidate = candidates_[index];
    if (candidate.ended) return;
    candidate.ended = true;
    context_.retry_advice.Computed(end.timings.inference);
    context_.metrics.requests().QueueTime(end.timings.queue);
    context_.metrics.requests().Tokens(end.prompt_tokens, end.cached_tokens, end.generated_tokens);
    context_.metrics.tenants().Tokens(tenant_, end.prompt_tokens, end.generated_tokens);
    context_.gate.Spend(tenant_, end.generated_tokens, now_);
    context_.metrics.requests().Times(end.timings.validation, end.timings.queue,
                                      end.timings.inference, end.generated_tokens);
    const FinishReason reason = end.reason;
    trace_.Ended(index, end, FinishName(reason));
    if (index == 0 && candidate.id && trace_.wanted()) {
      if (const auto times = context_.engine.Times(*candidate.id)) trace_.Times(*times);
    }
    writer_->End(index, std::move(end));
    CandidateEnded(reason);
  }

  void CandidateEnded(FinishReason reason) {
    if (++ended_ < candidates_.size()) return;
    over_ = true;
    // Counted before the answer ends, so that a client that has read its end finds it counted.
    const Time ended = SteadyNow();
    context_.metrics.requests().TotalTime(ended - arrived_);
    permit_ = Permit();
    if (failed_ == candidates_.size()) {
      const std::string_view kind = NameOf(last_failure_.kind);
      context_.metrics.requests().Failed(kind);
      TellEnd({.failure = RequestFailure{kind, last_failure_.message}});
      trace_.Finish(kind);
    } else {
      context_.metrics.requests().Succeeded(FinishName(reason));
      TellEnd({.finish_reason = FinishName(reason)});
      trace_.Finish("");
    }
    writer_->AllEnded(ended);
  }

  // Adds the tokens of the whole answer. Each candidate counts its own prompt, even if all are the
  // same.
  void TellEnd(RequestEnd end) {
    const auto exchange = exchange_.lock();
    if (!exchange) return;
    TokenCounts counts;
    counts.elapsed = SteadyNow() - arrived_;
    for (const Candidate& candidate : candidates_) {
      counts.prompt += candidate.prompt_tokens;
      counts.generated += candidate.tokens;
    }
    if (!end.failure || counts.generated > 0) end.tokens = counts;
    end.delivered = [delivery = delivery_](Time at) { delivery->Delivered(at); };
    exchange->Ended(std::move(end));
  }

  void On(std::size_t index, const GenerationError& error, std::vector<RequestId>& losers) {
    candidates_[index].ended = true;
    ApiError api = errors_.FromEngine(error, context_.options);
    AdviseRetry(context_, api);
    if (writer_->FailedAlone(index, api)) {
      ++failed_;
      last_failure_ = api;
      return CandidateEnded(FinishReason::kCancelled);
    }
    losers = Over(api.message);
    Fail(api);
  }

  void Fail(const ApiError& error) {
    context_.metrics.requests().Failed(NameOf(error.kind));
    TellEnd({.failure = RequestFailure{NameOf(error.kind), error.message}});
    writer_->Failed(error);
  }

  // Ends the request early; returns the generations that still run. Requires the mutex.
  std::vector<RequestId> Over(std::string_view why) {
    over_ = true;
    trace_.Finish(why);
    permit_ = Permit();
    std::vector<RequestId> running;
    for (const Candidate& candidate : candidates_) {
      if (candidate.tokens > 0 && !candidate.ended) {
        context_.metrics.requests().Tokens(candidate.prompt_tokens, 0, candidate.tokens);
        context_.metrics.tenants().Tokens(tenant_, candidate.prompt_tokens, candidate.tokens);
        context_.gate.Spend(tenant_, candidate.tokens, SteadyNow());
      }
      if (!candidate.ended && candidate.id) running.push_back(*candidate.id);
    }
    return running;
  }

  static std::string_view TextOf(CloseReason reason) {
    if (reason == CloseReason::kTimeout) return "the answer took too long";
    if (reason == CloseReason::kStopping) return "the server is stopping";
    return reason == CloseReason::kTooSlow ? "the client reads too slowly" : "the client went away";
  }

  // On an io thread.
  void Closed(CloseReason reason) {
    std::vector<RequestId> running;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      running = Over(TextOf(reason));
      std::string why(TextOf(reason));
      if (reason == CloseReason::kTimeout) {
        why += DeadlineText(timeout_, context_.options.request_timeout);
        Fail({ApiErrorKind::kDeadline, std::move(why), ""});
      } else if (reason == CloseReason::kStopping) {
        Fail({ApiErrorKind::kDraining, std::move(why), ""});
      } else {
        context_.metrics.requests().Cancelled();
        TellEnd({.failure = RequestFailure{"cancelled", std::move(why)}});
        writer_->Abandoned();
      }
    }
    for (const RequestId id : running) context_.engine.Cancel(id);
  }

  void Cancel() {
    std::vector<RequestId> running;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      constexpr std::string_view kWhy = "the client cancelled it";
      running = Over(kWhy);
      context_.metrics.requests().Cancelled();
      TellEnd({.failure = RequestFailure{"cancelled", std::string(kWhy)}});
      writer_->Cancelled();
    }
    for (const RequestId id : running) context_.engine.Cancel(id);
  }

  ApiContext& context_;
  const ErrorFormat& errors_;
  const std::string tenant_;
  const Time arrived_;
  const std::optional<Duration> timeout_;
  std::mutex mutex_;
  std::weak_ptr<Exchange> exchange_;  // the writer's, which may let go of it
  RequestTrace trace_;
  std::unique_ptr<AnswerWriter> writer_;
  Permit permit_;
  std::vector<Candidate> candidates_;
  const std::shared_ptr<Delivery> delivery_;
  Time now_;  // of the events being handled
  std::size_t ended_ = 0;
  std::size_t failed_ = 0;  // of them, without an answer
  ApiError last_failure_;
  bool over_ = false;
};

bool CandidateSink::OnEvents(std::vector<GenerationEvent> events) {
  return run_->OnEvents(index_, std::move(events));
}

}  // namespace

void StartRun(ApiContext& context, std::shared_ptr<Exchange> exchange, RunPlan plan) {
  std::vector<GenerationRequest> requests = std::move(plan.candidates);
  LeaveSpanToRun(*exchange);
  plan.tenant = requests.front().tenant;
  for (GenerationRequest& request : requests) {
    request.arrived = plan.arrived;
    request.read = plan.read;
  }
  context.metrics.tenants().Request(plan.tenant);
  RequestTrace trace = RequestTrace::Begin(context.options.spans, requests, plan.arrived);
  const auto run =
      std::make_shared<Run>(context, exchange, std::move(plan), std::move(trace), requests.size());
  run->OfferCancel();
  run->Submit(*exchange, std::move(requests));
}

void Launch(ApiContext& context, const RequestHead& head, const ErrorFormat& errors,
            std::vector<GenerationRequest> candidates, std::shared_ptr<Exchange> exchange,
            const MakeWriter& make_writer) {
  const auto hints = ReadHints(head);
  if (const auto* error = std::get_if<ApiError>(&hints)) {
    return RefuseRequest(context, *exchange, errors, *error);
  }
  auto permit = context.permits.Take(PermitsFor(candidates));
  if (!permit) {
    return RefuseRequest(context, *exchange, errors,
                         errors.TooManyRequests(context.options.max_concurrent_requests));
  }
  if (auto error = Enter(context, std::get<Hints>(hints), candidates, *permit)) {
    return RefuseRequest(context, *exchange, errors, *std::move(error));
  }
  RunPlan plan;
  plan.errors = &errors;
  plan.writer = make_writer(candidates);
  plan.candidates = std::move(candidates);
  plan.permit = *std::move(permit);
  plan.arrived = head.arrived;
  plan.read = head.read;
  plan.timeout = std::get<Hints>(hints).timeout;
  StartRun(context, std::move(exchange), std::move(plan));
}

void CountRefusal(ApiContext& context, Exchange& exchange, const ApiError& error) {
  context.metrics.requests().Failed(NameOf(error.kind));
  exchange.Ended({.failure = RequestFailure{NameOf(error.kind), error.message}});
}

void RefuseRequest(ApiContext& context, Exchange& exchange, const ErrorFormat& errors,
                   ApiError error) {
  AdviseRetry(context, error);
  CountRefusal(context, exchange, error);
  exchange.Respond(errors.Response(error));
}

void AdviseRetry(const ApiContext& context, ApiError& error) {
  if (error.kind != ApiErrorKind::kOverloaded || error.retry_after > 0) return;
  const SchedulerMetrics& queue = context.metrics.scheduler();
  error.retry_after = context.retry_advice.Seconds(queue.waiting(), queue.running());
}

std::string_view FinishName(FinishReason reason) {
  // In the order of FinishReason.
  constexpr std::string_view kNames[] = {"eos", "length", "stop_token", "stop_string", "cancelled"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace penstock::router
