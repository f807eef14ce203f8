#include "router/dispatch/request_task.h"

#include <algorithm>
#include <random>
#include <utility>

#include "common/status.h"
#include "router/dispatch/after_reasoning.h"
#include "router/dispatch/shown_request.h"

namespace penstock::router {
namespace {

// How long a prompt is kept that was sent before the requests which begin with it.
constexpr std::chrono::seconds kPromptHold{10};

GenerationError MakeError(ErrorKind kind, std::string message) {
  GenerationError error;
  error.kind = kind;
  error.message = std::move(message);
  return error;
}

GenerationError ToError(const scheduler::Failed& failed) {
  switch (failed.kind) {
    case scheduler::FailureKind::kQueueFull:
      return MakeError(ErrorKind::kOverloaded, failed.message);
    case scheduler::FailureKind::kTooLarge:
      return MakeError(ErrorKind::kValidation, failed.message);
    case scheduler::FailureKind::kDraining:
      return MakeError(ErrorKind::kDraining, failed.message);
    case scheduler::FailureKind::kNoGroup:
      return MakeError(ErrorKind::kUnavailable, failed.message);
    case scheduler::FailureKind::kGroupLost:
    case scheduler::FailureKind::kSuspect:
    case scheduler::FailureKind::kShardError:
      break;
  }
  return MakeError(ErrorKind::kGeneration, failed.message);
}

std::uint64_t RandomSeed() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device entropy;
    std::seed_seq words{entropy(), entropy(), entropy(), entropy()};
    return std::mt19937_64(words);
  }();
  return generator();
}

// The name of the request in the shards' logs.
std::string TraceName(const GenerationRequest& request) {
  return request.trace ? FormatTraceparent(*request.trace) : request.client_id;
}

}  // namespace

RequestTask::RequestTask(RequestId id, GenerationRequest request,
                         std::shared_ptr<GenerationSink> sink, const RequestServices& services,
                         Time arrived)
    : id_(id),
      request_(std::move(request)),
      sink_(std::move(sink)),
      services_(services),
      arrived_(arrived) {}

bool RequestTask::Begin() { return Put(Beginning{}); }

bool RequestTask::Deliver(std::span<scheduler::Event> events, Time at) {
  const std::lock_guard lock(mutex_);
  for (scheduler::Event& event : events) Keep(event, at);
  return !std::exchange(scheduled_, true);
}

void RequestTask::Keep(scheduler::Event& event, Time at) {
  if (const auto* event_tokens = std::get_if<scheduler::Tokens>(&event.what);
      mailbox_.empty() && event_tokens != nullptr && event_tokens->tokens.size() == 1 &&
      event_tokens->tokens[0].alternatives.empty()) {
    const SampledToken& token = event_tokens->tokens[0];
    tokens_.push_back({token.token, token.logprob, token.forced, at});
  } else {
    mailbox_.emplace_back(std::in_place_type<CoreEvent>, std::move(event), at);
  }
}

bool RequestTask::Fail(GenerationError error) { return Put(std::move(error)); }

bool RequestTask::Put(Item item) {
  const std::lock_guard lock(mutex_);
  mailbox_.push_back(std::move(item));
  return !std::exchange(scheduled_, true);
}

bool RequestTask::RunOnce() {
  PlainTokens tokens;
  {
    const std::lock_guard lock(mutex_);
    tokens = std::move(tokens_);
    items_.swap(mailbox_);
  }
  events_.reserve(events_.size() + tokens.size() + items_.size());
  for (const PlainToken& plain : tokens) {
    if (!ended_) Handle(plain);
  }
  for (Item& item : items_) {
    if (!ended_) Handle(std::move(item));
  }
  items_.clear();
  Flush();
  const std::lock_guard lock(mutex_);
  scheduled_ = !tokens_.empty() || !mailbox_.empty();
  return scheduled_;
}

void RequestTask::Handle(const PlainToken& plain) {
  now_ = plain.at;
  const SampledToken token{plain.token, plain.logprob, {}, plain.forced};
  OnTokens({&token, 1});
}

void RequestTask::Handle(Item&& item) {
  if (const auto* core_event = std::get_if<CoreEvent>(&item)) {
    now_ = core_event->at;
    Take(core_event->event);
  } else if (auto* error = std::get_if<GenerationError>(&item)) {
    services_.post(scheduler::Cancel{id_});  // it may be in the core's queue
    EndWith(std::move(*error));
  } else if (abandoned_) {
    ended_ = true;
    services_.records.SetState(id_, "cancelled");
    services_.forget(id_);
  } else if (auto* verdict = std::get_if<GrammarVerdict>(&item)) {
    Take(std::move(*verdict));
  } else {
    Prepare();
  }
}

void RequestTask::Prepare() {
  const bool chat = std::holds_alternative<ChatInput>(request_.prompt);
  services_.ledgers.Enter(id_, chat ? TimeKind::kTemplate : TimeKind::kTokenize, SteadyNow());
  auto built = services_.prompts.Build(request_);
  if (auto* error = std::get_if<GenerationError>(&built)) return Refuse(std::move(*error));
  built_ = std::get<Prompt>(std::move(built));
  if (built_.rendered) services_.ledgers.Enter(id_, TimeKind::kTokenize, *built_.rendered);
  if (!request_.grammar) return TakeGrammar({});
  // Checked last, as in TGI: after the length.
  AskForGrammar();
}

void RequestTask::Refuse(GenerationError error) {
  services_.records.SetState(id_, "refused");
  EndWith(std::move(error));
  services_.forget(id_);
}

void RequestTask::AskForGrammar() {
  services_.ledgers.Enter(id_, TimeKind::kGrammar, SteadyNow());
  Grammar grammar = std::move(request_.grammar);
  request_.grammar = {};
  if (services_.grammars == nullptr) {  // grammars are switched off
    Grammar::Written written = grammar.write();
    if (auto* wrong = std::get_if<std::string>(&written)) {
      return Take(GrammarRefusal{false, std::move(*wrong)});
    }
    return Take(GrammarVerdict(std::get<GrammarSpec>(std::move(written))));
  }
  if (auto known = services_.grammars->Known(grammar)) return Take(*std::move(known));
  services_.grammars->Check(std::move(grammar), arrived_, shared_from_this());
}

void RequestTask::OnVerdict(GrammarVerdict verdict) {
  if (Put(std::move(verdict))) services_.schedule(shared_from_this());
}

void RequestTask::Take(GrammarVerdict verdict) {
  if (auto* spec = std::get_if<GrammarSpec>(&verdict)) {
    return TakeGrammar(std::move(*spec));
  }
  auto& refusal = std::get<GrammarRefusal>(verdict);
  GenerationError error = MakeError(refusal.busy ? ErrorKind::kOverloaded : ErrorKind::kValidation,
                                    std::move(refusal.message));
  if (!refusal.busy) error.field = std::move(refusal.field);
  Refuse(std::move(error));
}

void RequestTask::TakeGrammar(GrammarSpec spec) {
  grammar_ = AfterReasoning(std::move(spec), request_.reasoning, built_.end);
  Send();
}

void RequestTask::Send() {
  auto stream = TextStream::Create(services_.tokenizer, built_.ids,
                                   StreamOptionsOf(request_, services_.eos_ids));
  if (!stream.ok()) {
    EndBroken(stream.status());
    return services_.forget(id_);
  }
  stream_.emplace(*std::move(stream));
  Post(std::exchange(built_, {}));
}

void RequestTask::Post(Prompt prompt) {
  prompt_tokens_ = static_cast<std::uint32_t>(prompt.ids.size());
  prompt_end_ = std::move(prompt.end);
  kept_tokens_ = prompt.pinned_tokens;
  services_.records.SetPromptTokens(id_, prompt_tokens_);
  if (!request_.step_of_search) {
    services_.history.Add(id_, request_.tenant, prompt.ids, wants_prompt_logprobs());
  }
  if (shows_prompt()) prompt_ = prompt.ids;
  if (request_.sampling.do_sample && !request_.seed) {
    request_.seed = services_.seed ? *services_.seed : RandomSeed();
  }

  scheduler::Arrival arrival;
  arrival.request = id_;
  arrival.prompt = std::move(prompt.ids);
  arrival.max_new_tokens = prompt.max_new_tokens;
  arrival.length_given = request_.max_new_tokens.has_value();
  arrival.request_class = request_.request_class;
  arrival.predicted_tokens = request_.predicted_tokens;
  if (services_.ranks != nullptr) {
    arrival.ranked_tokens = services_.ranks->Predict(
        {arrival.prompt, arrival.max_new_tokens, arrival.length_given, arrival.request_class});
  }
  arrival.min_new_tokens = request_.min_new_tokens;
  arrival.sampling = request_.sampling;
  arrival.sampling.seed = request_.seed.value_or(0);
  arrival.sampling.bad_words = std::move(prompt.bad_words);
  arrival.logprobs = request_.logprobs;
  arrival.stop_token_ids = request_.stop_token_ids;
  arrival.ignore_eos = request_.ignore_eos;
  arrival.priority = request_.priority;
  arrival.tenant = services_.flushes.Root(request_.tenant, request_.shares_prefixes);
  arrival.account = request_.account;
  arrival.weight = request_.weight;
  if (request_.adapter != nullptr) arrival.adapter_id = *request_.adapter;
  arrival.pinned_tokens = prompt.pinned_tokens;
  arrival.trace_id = services_.shows_requests
                         ? ShownRequest(request_, grammar_, prompt.max_new_tokens,
                                        services_.prompts.limits().max_input_tokens)
                         : TraceName(request_);
  // An empty expression allows every output, as in TGI.
  if (!grammar_.source.empty()) arrival.grammar = std::move(grammar_);
  queued_ = SteadyNow();
  services_.ledgers.Enter(id_, TimeKind::kMailbox, queued_);
  if (!services_.post(std::move(arrival))) {
    services_.records.SetState(id_, "refused");
    EndWith(MakeError(ErrorKind::kOverloaded, "Model is overloaded"));
    return services_.forget(id_);
  }
  // If the client left before the arrival was posted, its Cancel had no effect.
  if (abandoned_) services_.post(scheduler::Cancel{id_});
}

void RequestTask::Take(const scheduler::Event& event) {
  if (const auto* started = std::get_if<scheduler::Started>(&event.what)) {
    OnStarted(*started);
  } else if (const auto* logprobs = std::get_if<scheduler::PromptLogprobs>(&event.what)) {
    AddStart({logprobs->logprobs, logprobs->alternatives});
  } else if (const auto* tokens = std::get_if<scheduler::Tokens>(&event.what)) {
    OnTokens(tokens->tokens);
  } else if (const auto* finished = std::get_if<scheduler::Finished>(&event.what)) {
    OnFinished(*finished);
  } else {
    EndWith(ToError(std::get<scheduler::Failed>(event.what)));
  }
}

void RequestTask::OnStarted(const scheduler::Started& started) {
  started_ = now_;
  cached_tokens_ = started.cached_tokens;
  if (!wants_prompt_logprobs()) AddStart({});
}

void RequestTask::AddStart(PromptReport report) {
  GenerationStart start;
  start.request = id_;
  start.prompt_tokens = prompt_tokens_;
  start.cached_tokens = cached_tokens_;
  start.kept_tokens = kept_tokens_;
  start.seed = request_.seed.value_or(0);
  start.prompt_end = std::move(prompt_end_);
  if (shows_prompt()) {
    const absl::Status described =
        DescribePrompt(*services_.tokenizer, prompt_, report, request_.decode_alone, start);
    if (!described.ok()) return EndBroken(described);
  }
  events_.emplace_back(std::move(start));
}

void RequestTask::OnTokens(std::span<const SampledToken> tokens) {
  if (!first_token_) first_token_ = now_;
  const auto stop = stream_->Push(tokens, events_);
  if (!stop.ok()) return EndBroken(stop.status());
  if (!stop->has_value()) return;
  awaits_end_ = true;
  services_.post(scheduler::FinishAt{id_, **stop});
}

void RequestTask::OnFinished(const scheduler::Finished& finished) {
  if (request_.hold_prompt) {
    const scheduler::ForgetPrefixes forget{request_.tenant, id_};
    services_.post_later(now_ + kPromptHold, forget);
  }
  if (finished.reason == FinishReason::kCancelled) {
    ended_ = true;
    return;
  }
  auto end = stream_->Finish(finished.reason, finished.generated_tokens);
  if (!end.ok()) return EndBroken(end.status());
  end->prompt_tokens = prompt_tokens_;
  end->cached_tokens = cached_tokens_;
  end->seed = request_.seed.value_or(0);
  end->sampled = request_.sampling.do_sample;
  end->timings.validation = queued_ - arrived_;
  end->timings.queue = started_ - queued_;
  end->timings.inference = now_ - started_;
  end->timings.first_token = first_token_.value_or(now_) - arrived_;
  end->timings.total = now_ - arrived_;
  events_.emplace_back(*std::move(end));
  awaits_end_ = false;
  Flush();
  ended_ = true;
}

void RequestTask::EndWith(GenerationError error) {
  events_.emplace_back(std::move(error));
  awaits_end_ = false;
  Flush();
  ended_ = true;
}

// The text library failed, so the core must cancel the request.
void RequestTask::EndBroken(const absl::Status& status) {
  services_.post(scheduler::Cancel{id_});
  services_.records.SetState(id_, "failed");
  EndWith(MakeError(ErrorKind::kInternal, Message(status)));
}

void RequestTask::Flush() {
  if (awaits_end_) return;
  std::vector<GenerationEvent> events = std::exchange(events_, {});
  if (events.empty() || ended_ || abandoned_) return;
  const bool last = std::holds_alternative<GenerationEnd>(events.back()) ||
                    std::holds_alternative<GenerationError>(events.back());
  const bool taken = sink_->OnEvents(std::move(events));
  if (last) services_.ledgers.End(id_, SteadyNow());
  if (taken || last) return;  // a last event needs no Cancel
  ended_ = true;
  abandoned_ = true;
  services_.post(scheduler::Cancel{id_});
}

}  // namespace penstock::router
