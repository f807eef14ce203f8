// One beam search. It is a client of the engine: each step submits the running texts as prompts of
// one new token, whose most probable alternatives continue them. The prefix cache keeps a step
// cheap. The rules are in beam_scores.h.
//
// Thread-safe. The sinks get all their events at once, when the search is over.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/dispatch/beam_scores.h"
#include "router/dispatch/request_records.h"
#include "router/engine.h"
#include "router/stream/prompt_builder.h"
#include "text/tokenizer.h"

namespace penstock::router {

// What all searches share. Must outlive them.
struct BeamServices {
  Engine& engine;
  const PromptBuilder& prompts;
  const std::shared_ptr<const text::Tokenizer> tokenizer;
  const std::vector<TokenId> eos_ids;
  RequestRecords& records;
  const std::function<void(RequestId)> forget;  // the search is over
};

class BeamSearch final : public std::enable_shared_from_this<BeamSearch> {
 public:
  using Sinks = std::vector<std::shared_ptr<GenerationSink>>;

  // `sinks`: one for each text that is wanted, the best first.
  BeamSearch(RequestId id, GenerationRequest request, Sinks sinks, const BeamServices& services,
             Time arrived);

  // On a text thread: makes the prompt and submits the first step.
  void Begin();
  // The client is gone.
  void Cancel();

 private:
  class StepSink;
  using Events = std::vector<GenerationEvent>;

  bool OnStep(std::size_t beam, const Events& events);
  std::optional<GenerationError> Prepare();
  GenerationRequest FirstStep() const;
  void Take(std::size_t beam, const GenerationEvent& event);
  void SubmitStep();
  void EndWith(const GenerationError& error);
  void EndWithTexts();
  absl::StatusOr<Events> EventsOf(const BeamScores::Finished& text) const;
  GenerationEnd Described(GenerationEnd end) const;
  // Delivers the events of a search that is over. Without the mutex.
  void Deliver();

  const RequestId id_;
  const GenerationRequest request_;
  const Sinks sinks_;
  const BeamServices& services_;
  const Time arrived_;

  std::mutex mutex_;
  bool over_ = false;
  Prompt prompt_;
  GenerationRequest step_;  // without its prompt
  std::optional<BeamScores> scores_;
  std::vector<BeamScores::Continuations> next_;
  std::vector<RequestId> ids_;  // of this step
  std::size_t returned_ = 0;    // of this step
  std::optional<GenerationStart> start_;
  std::optional<GenerationEnd> first_end_;
  std::optional<GenerationError> error_;  // of this step
  std::vector<Events> outbox_;            // for each sink
};

}  // namespace penstock::router
