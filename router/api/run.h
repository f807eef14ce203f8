// Runs one request of any dialect: submits it to the engine, hands events to the dialect's writer,
// cancels it when the client leaves, and counts it in the metrics.
//
// A request may have several candidates (best_of, n, a list of prompts): each is one generation.
// Threads: the engine delivers the events of one candidate on one thread at a time. Events of
// several candidates and a disconnect may come at once, so a mutex serialises the writer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/context.h"
#include "router/api/errors.h"
#include "router/http/application.h"

namespace penstock::router {

// Turns the events of a request into one answer of a dialect. Never called by two threads at once.
// The last call is AllEnded, Failed or Cancelled, which answer or end the exchange, or Abandoned.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // Before all others. `cancel` ends the request at the wish of its client. It may be called from
  // any thread that is not in a call of the writer, also when the request is over.
  virtual void OfferCancel(std::function<void()>) {}
  virtual void Start(std::size_t, const GenerationStart&) {}
  virtual void Token(std::size_t, GenerationToken) {}
  virtual void End(std::size_t candidate, GenerationEnd end) = 0;
  // Called after each batch of events. Returns false if the client accepts no more.
  virtual bool Flush() { return true; }
  virtual void AllEnded(Time ended) = 0;
  virtual void Failed(const ApiError& error) = 0;
  // Ended by `cancel`. Only for writers that keep it.
  virtual void Cancelled() {}
  // Its client has gone, and nothing can be answered. Only for writers that keep it.
  virtual void Abandoned() {}
  // One of several candidates failed. True: the writer reported it and the others continue. False:
  // all end with Failed.
  virtual bool FailedAlone(std::size_t, const ApiError&) { return false; }
};

struct RunPlan {
  const ErrorFormat* errors = nullptr;  // not null
  std::vector<GenerationRequest> candidates;
  std::unique_ptr<AnswerWriter> writer;
  Permit permit;
  Time arrived;
  Time read;
  std::optional<Duration> timeout = {};  // of the client's header
  std::string tenant = {};               // set by StartRun from the candidates
};

using MakeWriter =
    std::function<std::unique_ptr<AnswerWriter>(std::vector<GenerationRequest>& candidates)>;

// Gives the candidates the hints of the head, takes a permit for each, and starts the run with the
// writer that `make_writer` returns. Or answers why it cannot.
void Launch(ApiContext& context, const RequestHead& head, const ErrorFormat& errors,
            std::vector<GenerationRequest> candidates, std::shared_ptr<Exchange> exchange,
            const MakeWriter& make_writer);

// The caller has counted the arrival; the run counts the rest. `exchange` is the writer's as well.
void StartRun(ApiContext& context, std::shared_ptr<Exchange> exchange, RunPlan plan);

// Counts a request that never reached the engine, and tells the exchange why. The caller answers.
void CountRefusal(ApiContext& context, Exchange& exchange, const ApiError& error);
// Counts and answers it.
void RefuseRequest(ApiContext& context, Exchange& exchange, const ErrorFormat& errors,
                   ApiError error);
// Adds to an overload when the client should try again.
void AdviseRetry(const ApiContext& context, ApiError& error);

std::string_view FinishName(FinishReason reason);  // for metrics

}  // namespace penstock::router
