#include "router/dispatch/beam_search.h"

#include <algorithm>
#include <variant>

#include "common/status.h"
#include "router/stream/text_stream.h"
#include "scheduler/output.h"

namespace penstock::router {

class BeamSearch::StepSink final : public GenerationSink {
 public:
  StepSink(std::shared_ptr<BeamSearch> search, std::size_t beam)
      : search_(std::move(search)), beam_(beam) {}
  bool OnEvents(std::vector<GenerationEvent> events) override {
    return search_->OnStep(beam_, events);
  }

 private:
  const std::shared_ptr<BeamSearch> search_;
  const std::size_t beam_;
};

namespace {

GenerationError BeamError(ErrorKind kind, std::string message) {
  GenerationError error;
  error.kind = kind;
  error.message = std::move(message);
  return error;
}

// Tokens that end a text.
std::vector<TokenId> EndsOf(const GenerationRequest& request, const std::vector<TokenId>& eos_ids) {
  std::vector<TokenId> ends = request.stop_token_ids;
  if (!request.ignore_eos) ends.insert(ends.end(), eos_ids.begin(), eos_ids.end());
  std::ranges::sort(ends);
  const auto repeated = std::ranges::unique(ends);
  ends.erase(repeated.begin(), repeated.end());
  return ends;
}

}  // namespace

BeamSearch::BeamSearch(RequestId id, GenerationRequest request, Sinks sinks,
                       const BeamServices& services, Time arrived)
    : id_(id),
      request_(std::move(request)),
      sinks_(std::move(sinks)),
      services_(services),
      arrived_(arrived) {}

void BeamSearch::Begin() {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    if (const auto error = Prepare()) {
      EndWith(*error);
    } else {
      SubmitStep();
    }
  }
  Deliver();
}

std::optional<GenerationError> BeamSearch::Prepare() {
  auto built = services_.prompts.Build(request_);
  if (auto* error = std::get_if<GenerationError>(&built)) return std::move(*error);
  prompt_ = std::get<Prompt>(std::move(built));
  // The last step's prompt has all tokens but one.
  const auto tokens = static_cast<std::uint32_t>(prompt_.ids.size());
  const std::uint32_t most = services_.prompts.limits().max_input_tokens + 1;
  if (!request_.max_new_tokens)
    prompt_.max_new_tokens = std::min(prompt_.max_new_tokens, most - tokens);
  if (tokens + prompt_.max_new_tokens > most) {
    GenerationError error = BeamError(
        ErrorKind::kValidation,
        "`inputs` tokens + `max_new_tokens` must be <= " + std::to_string(most) +
            " with beam search. Given: " + std::to_string(tokens + prompt_.max_new_tokens));
    error.field = "max_new_tokens";
    error.length = {.prompt_tokens = tokens,
                    .max_new_tokens = prompt_.max_new_tokens,
                    .limit = most,
                    .context = most};
    return error;
  }
  scores_.emplace(*request_.beams, BeamLimits{.max_new_tokens = prompt_.max_new_tokens,
                                              .min_new_tokens = request_.min_new_tokens,
                                              .shown = request_.logprobs.top_n,
                                              .ends = EndsOf(request_, services_.eos_ids)});
  step_ = FirstStep();
  services_.records.SetPromptTokens(id_, tokens);
  return std::nullopt;
}

GenerationRequest BeamSearch::FirstStep() const {
  GenerationRequest step = request_;
  step.beams.reset();
  step.step_of_search = true;
  step.prompt = std::vector<TokenId>();
  step.cached_prompt.clear();
  step.truncate.reset();
  step.max_new_tokens = 1;
  step.min_new_tokens = 0;
  step.ignore_eos = true;
  step.stop_token_ids.clear();
  step.sampling.do_sample = false;
  step.logprobs.kind = LogprobRequest::Kind::kProcessed;
  step.logprobs.top_n = std::min(scores_->alternatives(), services_.prompts.limits().vocabulary);
  return step;
}

// With the mutex held. The engine calls no sink from inside Submit.
void BeamSearch::SubmitStep() {
  next_.assign(scores_->running(), {});
  ids_.clear();
  returned_ = 0;
  for (std::size_t beam = 0; beam < next_.size(); ++beam) {
    std::vector<TokenId> ids = prompt_.ids;
    const std::vector<TokenId> generated = scores_->RunningTokens(beam);
    ids.insert(ids.end(), generated.begin(), generated.end());
    step_.prompt = std::move(ids);
    ids_.push_back(
        services_.engine.Submit(step_, std::make_shared<StepSink>(shared_from_this(), beam)));
  }
  step_.show_prompt = false;  // the first step's start tells about the prompt
  step_.logprobs.prompt_logprobs = false;
  step_.logprobs.prompt_top_n.reset();
}

bool BeamSearch::OnStep(std::size_t beam, const Events& events) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    for (const GenerationEvent& event : events) Take(beam, event);
    if (returned_ < next_.size()) return true;
    if (error_) {
      EndWith(*error_);
    } else if (scores_->Advance(next_)) {
      SubmitStep();
    } else {
      EndWithTexts();
    }
  }
  Deliver();
  return true;
}

// A step ends when all its requests have: none needs a Cancel.
void BeamSearch::Take(std::size_t beam, const GenerationEvent& event) {
  if (const auto* start = std::get_if<GenerationStart>(&event)) {
    if (!start_) start_ = *start;
  } else if (const auto* token = std::get_if<GenerationToken>(&event)) {
    for (const TokenInfo& info : token->top) {
      next_[beam].push_back({info.id, info.logprob.value_or(0)});
    }
  } else if (const auto* end = std::get_if<GenerationEnd>(&event)) {
    ++returned_;
    if (!first_end_) first_end_ = *end;
  } else {
    ++returned_;
    error_ = std::get<GenerationError>(event);
  }
}

void BeamSearch::EndWith(const GenerationError& error) {
  over_ = true;
  outbox_.assign(sinks_.size(), {error});
  services_.records.SetState(id_, scores_ ? "failed" : "refused");
}

void BeamSearch::EndWithTexts() {
  const auto best = scores_->Best(sinks_.size());
  if (best.size() < sinks_.size()) {
    return EndWith(BeamError(ErrorKind::kGeneration,
                             "beam search found only " + std::to_string(best.size()) + " texts"));
  }
  std::uint32_t generated = 0;
  std::vector<Events> outbox;
  for (const BeamScores::Finished& text : best) {
    auto events = EventsOf(text);
    if (!events.ok()) {
      return EndWith(BeamError(ErrorKind::kInternal, Message(events.status())));
    }
    outbox.push_back(*std::move(events));
    generated += static_cast<std::uint32_t>(text.tokens.size());
  }
  over_ = true;
  outbox_ = std::move(outbox);
  const scheduler::Event events[] = {
      {id_, scheduler::Started{start_->prompt_tokens, first_end_->cached_tokens}},
      {id_, scheduler::Finished{FinishReason::kLength, generated}}};
  services_.records.Take(events, {});
}

absl::StatusOr<BeamSearch::Events> BeamSearch::EventsOf(const BeamScores::Finished& text) const {
  PENSTOCK_ASSIGN_OR_RETURN(auto stream,
                            TextStream::Create(services_.tokenizer, prompt_.ids,
                                               StreamOptionsOf(request_, services_.eos_ids)));
  Events events;
  GenerationStart start = *start_;
  start.request = id_;
  start.prompt_end = prompt_.end;
  events.emplace_back(std::move(start));
  PENSTOCK_RETURN_IF_ERROR(stream.Push(text.tokens, events).status());
  const auto generated = static_cast<std::uint32_t>(text.tokens.size());
  FinishReason reason = FinishReason::kLength;
  if (text.ended) {
    const bool asked = std::ranges::find(request_.stop_token_ids, text.tokens.back().token) !=
                       request_.stop_token_ids.end();
    reason = asked ? FinishReason::kStopToken : FinishReason::kEos;
  }
  PENSTOCK_ASSIGN_OR_RETURN(GenerationEnd end, stream.Finish(reason, generated));
  events.emplace_back(Described(std::move(end)));
  return events;
}

GenerationEnd BeamSearch::Described(GenerationEnd end) const {
  end.prompt_tokens = start_->prompt_tokens;
  end.cached_tokens = first_end_->cached_tokens;
  end.timings = first_end_->timings;
  end.timings.total = SteadyNow() - arrived_;
  end.timings.inference = end.timings.total - end.timings.validation - end.timings.queue;
  return end;
}

void BeamSearch::Deliver() {
  std::vector<Events> outbox;
  {
    const std::lock_guard lock(mutex_);
    outbox.swap(outbox_);
  }
  if (outbox.empty()) return;
  services_.forget(id_);
  for (std::size_t i = 0; i < outbox.size(); ++i) sinks_[i]->OnEvents(std::move(outbox[i]));
}

void BeamSearch::Cancel() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(over_, true)) return;
    ids.swap(ids_);
  }
  services_.records.SetState(id_, "cancelled");
  services_.forget(id_);
  for (const RequestId id : ids) services_.engine.Cancel(id);
}

}  // namespace penstock::router
