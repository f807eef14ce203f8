#include "router/dispatch/generation_service.h"

#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "router/dispatch/prefix_reason.h"

namespace penstock::router {
namespace {

// `health` is not kReady.
GenerationError Refusal(const HealthReport& health) {
  GenerationError error;
  const bool draining = health.state == Health::kDraining;
  error.kind = draining ? ErrorKind::kDraining : ErrorKind::kUnavailable;
  error.message = health.detail;
  return error;
}

PromptLimits LimitsOf(const ModelFacts& facts) {
  return {facts.max_input_tokens, facts.max_total_tokens, facts.vocabulary};
}

std::unique_ptr<GrammarChecker> CheckerOf(const ModelFacts& facts,
                                          const GenerationServiceOptions& options) {
  if (!facts.has_grammar || !options.grammars) return nullptr;
  return std::make_unique<GrammarChecker>(options.tokenizer, facts.vocabulary, options.eos_ids);
}

std::unique_ptr<EmbedService> EmbedderOf(const ModelFacts& facts,
                                         const GenerationServiceOptions& options) {
  if (!facts.vectors) return nullptr;
  return std::make_unique<EmbedService>(options.embed, facts, options.tokenizer);
}

GenerationError GeneratesNoText(const VectorFacts& vectors) {
  const std::string routes =
      vectors.classifies ? "/classify, /score and /rerank" : "/v1/embeddings, /score and /rerank";
  return {ErrorKind::kValidation,
          "the model generates no text: it gives " +
              std::string(vectors.classifies ? "classes" : "vectors") + " of texts on " + routes,
          "model", std::nullopt};
}

bool IsTerminal(const scheduler::Event& event) {
  return std::holds_alternative<scheduler::Finished>(event.what) ||
         std::holds_alternative<scheduler::Failed>(event.what);
}

// The first events, as far as they are of one request. The core gives a request's events of one
// step together.
std::span<scheduler::Event> FirstRun(std::span<scheduler::Event> events) {
  std::size_t size = 1;
  while (size < events.size() && events[size].request == events[0].request) ++size;
  return events.first(size);
}

// One task, a strand of its own.
class TextTask final : public Strand {
 public:
  explicit TextTask(std::function<void()> work) : work_(std::move(work)) {}
  bool RunOnce() override {
    work_();
    return false;
  }

 private:
  std::function<void()> work_;
};

}  // namespace

GenerationService::GenerationService(GenerationServiceOptions options, Metrics& metrics)
    : facts_(std::move(options.facts)),
      prompts_(options.tokenizer, options.chat, LimitsOf(facts_), options.drop_volatile_lines),
      grammars_(CheckerOf(facts_, options)),
      embedder_(EmbedderOf(facts_, options)),
      adapters_([this](std::function<void()> done) { core_.AfterPlans(std::move(done)); }),
      ledgers_(metrics),
      history_(options.prompt_history),
      block_size_(options.block_size),
      coalescer_(options.stream_interval),
      ranks_(std::move(options.ranks)),
      services_{
          prompts_,
          grammars_.get(),
          options.tokenizer,
          std::move(options.eos_ids),
          options.seed,
          records_,
          ledgers_,
          history_,
          flushes_,
          ranks_.get(),
          options.show_requests,
          [this](decltype(scheduler::Input::what) what) { return core_.Post(std::move(what)); },
          [this](Time at, decltype(scheduler::Input::what) what) {
            core_.PostLater(at, std::move(what));
          },
          [this](std::shared_ptr<Strand> strand) { pool_.Schedule(std::move(strand)); },
          [this](RequestId request) { Forget(request); }},
      beam_services_{*this,
                     prompts_,
                     options.tokenizer,
                     services_.eos_ids,
                     records_,
                     [this](RequestId search) { ForgetSearch(search); }},
      core_(std::move(options.core), *this, metrics),
      groups_return_(options.groups_return),
      probe_(options.health_probe,
             [this](std::shared_ptr<GenerationSink> sink) { SubmitProbe(std::move(sink)); }),
      pool_(options.text_threads) {}

GenerationService::~GenerationService() { Stop(); }

absl::Status GenerationService::Start(std::function<void(LostGroup)> on_lost) {
  on_lost_ = std::move(on_lost);
  return core_.Start();
}

void GenerationService::Attach(std::unique_ptr<GroupLink> link) {
  if (embedder_ != nullptr) embedder_->queue().Up(*link);
  if (facts_.has_adapters) adapters_.Up(*link);
  core_.Attach(std::move(link));
  const std::lock_guard lock(mutex_);
  ++groups_up_;
  if (!draining_ && !over_) health_ = {Health::kReady, ""};
}

std::size_t GenerationService::Drain(std::function<void()> on_idle) {
  std::size_t open = 0;
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    open = tasks_.size() + open_embeds_;
    on_idle_ = std::move(on_idle);
    std::string why = "the server is shutting down";
    if (health_.state == Health::kFailed) why += ": " + health_.detail;
    if (!over_) health_ = {Health::kDraining, std::move(why)};
  }
  core_.EndWatch();
  core_.Post(scheduler::Drain{});
  FailAllUnlessServed();
  TellIfIdle();
  return open;
}

void GenerationService::Stop() {
  core_.Stop();
  if (embedder_ != nullptr) embedder_->queue().Stop();
  adapters_.Stop();
  if (grammars_ != nullptr) grammars_->Stop();
  pool_.Stop();
  probe_.Stop();
  const std::lock_guard lock(mutex_);
  tasks_.clear();
  searches_.clear();
}

RequestId GenerationService::Submit(GenerationRequest request,
                                    std::shared_ptr<GenerationSink> sink) {
  const Time now = SteadyNow();
  std::shared_ptr<RequestTask> task;
  RequestId id;
  std::optional<GenerationError> refusal;
  std::optional<GenerationError> unknown = TakeAdapter(request);
  {
    const std::lock_guard lock(mutex_);
    id = RequestId(++last_request_);
    if (!request.step_of_search) {
      records_.Add(id, request.tenant, request.client_id, now);
      ledgers_.Begin(id, request, now);
    }
    task = std::make_shared<RequestTask>(id, std::move(request), std::move(sink), services_, now);
    if (health_.state != Health::kReady) {
      refusal = Refusal(health_);
    } else if (facts_.vectors) {
      refusal = GeneratesNoText(*facts_.vectors);
    } else if (unknown) {
      refusal = std::move(unknown);
    } else {
      tasks_.emplace(id, task);
    }
  }
  if (refusal) records_.SetState(id, "refused");
  const bool schedule = refusal ? task->Fail(*std::move(refusal)) : task->Begin();
  if (schedule) pool_.Schedule(std::move(task));
  return id;
}

RequestId GenerationService::Search(GenerationRequest request,
                                    std::vector<std::shared_ptr<GenerationSink>> sinks) {
  const Time now = SteadyNow();
  TakeAdapter(request);  // its steps refuse an unknown one
  std::shared_ptr<BeamSearch> search;
  RequestId id;
  {
    const std::lock_guard lock(mutex_);
    id = RequestId(++last_request_);
    records_.Add(id, request.tenant, request.client_id, now);
    ledgers_.Begin(id, request, now);
    search =
        std::make_shared<BeamSearch>(id, std::move(request), std::move(sinks), beam_services_, now);
    searches_.emplace(id, search);
  }
  pool_.Schedule(std::make_shared<TextTask>([search] { search->Begin(); }));
  return id;
}

std::optional<GenerationError> GenerationService::TakeAdapter(GenerationRequest& request) {
  if (!request.adapter_id || request.adapter != nullptr || services_.shows_requests) return {};
  request.adapter = adapters_.Use(*request.adapter_id);
  if (request.adapter != nullptr) return {};
  std::string names;
  for (const AdapterInfo& adapter : adapters_.List()) {
    names += (names.empty() ? "" : ", ") + adapter.name;
  }
  return GenerationError{ErrorKind::kValidation,
                         "`adapter_id` must be the name of a loaded adapter" +
                             (names.empty() ? "; none is loaded" : " (" + names + ")") +
                             ". Given: " + *request.adapter_id,
                         "adapter_id", std::nullopt};
}

void GenerationService::LoadAdapter(AdapterFolder adapter, AdapterDone done) {
  if (!facts_.has_adapters) return Engine::LoadAdapter(std::move(adapter), std::move(done));
  adapters_.Load(std::move(adapter), std::move(done));
}

void GenerationService::UnloadAdapter(const std::string& name, AdapterDone done) {
  if (!facts_.has_adapters) return Engine::UnloadAdapter(name, std::move(done));
  adapters_.Unload(name, std::move(done));
}

void GenerationService::ForgetSearch(RequestId search) {
  const std::lock_guard lock(mutex_);
  searches_.erase(search);
}

void GenerationService::Cancel(RequestId request) {
  std::shared_ptr<BeamSearch> search;
  {
    const std::lock_guard lock(mutex_);
    const auto found = searches_.find(request);
    if (found != searches_.end()) search = found->second;
  }
  if (search != nullptr) return search->Cancel();
  {
    const std::lock_guard lock(mutex_);
    const auto found = tasks_.find(request);
    if (found == tasks_.end()) return;
    found->second->Abandon();
  }
  core_.Post(scheduler::Cancel{request});
}

void GenerationService::Render(ChatInput chat, std::function<void(RenderedChat)> done) {
  pool_.Schedule(std::make_shared<TextTask>(
      [this, chat = std::move(chat), done = std::move(done)] { done(prompts_.Render(chat)); }));
}

void GenerationService::Tokenize(std::string text, TokenizeOptions options,
                                 std::function<void(TokenizedText)> done) {
  pool_.Schedule(
      std::make_shared<TextTask>([this, text = std::move(text), options, done = std::move(done)] {
        done(TokenizeText(prompts_.tokenizer(), text, options));
      }));
}

void GenerationService::Detokenize(std::vector<TokenId> ids,
                                   std::function<void(DecodedTokens)> done) {
  pool_.Schedule(std::make_shared<TextTask>([this, ids = std::move(ids), done = std::move(done)] {
    done(DetokenizeIds(prompts_.tokenizer(), ids));
  }));
}

void GenerationService::Embed(EmbedJob job, std::function<void(EmbedResult)> done) {
  if (embedder_ == nullptr) return Engine::Embed(std::move(job), std::move(done));
  std::optional<GenerationError> refusal;
  {
    const std::lock_guard lock(mutex_);
    if (health_.state != Health::kReady) refusal = Refusal(health_);
  }
  if (refusal) return done(*std::move(refusal));
  pool_.Schedule(
      std::make_shared<TextTask>([this, job = std::move(job), counted = Counted(std::move(done))] {
        embedder_->Run(job, counted);
      }));
}

std::function<void(EmbedResult)> GenerationService::Counted(std::function<void(EmbedResult)> done) {
  {
    const std::lock_guard lock(mutex_);
    ++open_embeds_;
  }
  return [this, done = std::move(done)](EmbedResult result) {
    done(std::move(result));
    {
      const std::lock_guard lock(mutex_);
      --open_embeds_;
    }
    TellIfIdle();
  };
}

ModelFacts GenerationService::Facts() const { return facts_; }

HealthReport GenerationService::CheckHealth() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

void GenerationService::ProbeHealth(HealthProbe::Answer answer) {
  HealthReport report;
  bool busy = false;
  {
    const std::lock_guard lock(mutex_);
    report = health_;
    busy = !tasks_.empty();
  }
  if (facts_.vectors) return answer(report);  // a probe would generate
  probe_.Ask(report, busy, std::move(answer));
}

absl::StatusOr<RequestRecord> GenerationService::Explain(const std::string& id,
                                                         const std::string& tenant,
                                                         bool admin) const {
  auto record = records_.Find(id, tenant, admin);
  if (!record.ok()) return record;
  const PrefixSources sources{history_, records_, prompts_.tokenizer(), block_size_};
  record->prefix_miss = ExplainPrefix(sources, *record, admin);
  record->ledger = ledgers_.View(record->request, SteadyNow());
  if (!admin) records_.HideOthers(*record);
  return record;
}

std::optional<TimeTotals> GenerationService::Times(RequestId request) const {
  const auto view = ledgers_.View(request, SteadyNow());
  return view ? std::optional(view->totals) : std::nullopt;
}

std::vector<CachedPrompt> GenerationService::CachedPrompts(const std::string& tenant) const {
  return cached_prompts_.List(tenant);
}

std::size_t GenerationService::ForgetCachedPrompts(const std::string& tenant,
                                                   std::optional<std::uint64_t> id) {
  std::vector<RequestId> made_by;
  for (const CachedPrompt& prompt : cached_prompts_.List(tenant)) {
    if (!id || prompt.id == *id) made_by.emplace_back(prompt.id);
  }
  const std::size_t count = cached_prompts_.Forget(tenant, id);
  if (count == 0) return 0;
  scheduler::ForgetPrefixes forget{tenant, std::nullopt};
  if (id) forget.made_by = RequestId(*id);
  core_.Post(std::move(forget));
  if (tenant.empty()) return count;
  // Where tenants share their prefixes, the tenant made them under the name of all.
  for (const RequestId request : made_by) core_.Post(scheduler::ForgetPrefixes{"", request});
  return count;
}

void GenerationService::FlushPrefixes(const std::string& tenant) {
  ForgetCachedPrompts(tenant, std::nullopt);
  flushes_.Add(tenant);
}

void GenerationService::OnPins(const std::vector<scheduler::PinChange>& changes) {
  const Time now = SteadyNow();
  for (const scheduler::PinChange& change : changes) {
    CachedPromptList::Owner owner;
    {
      const std::lock_guard lock(mutex_);
      const auto found = tasks_.find(change.made_by);
      if (found != tasks_.end()) {
        owner = {found->second->tenant(), found->second->kept_text()};
      }
    }
    cached_prompts_.Take(change, owner, now);
  }
}

void GenerationService::OnOutputs(std::span<scheduler::Event> events,
                                  std::span<const Decision> decisions) {
  const Time now = SteadyNow();
  if (!events.empty()) probe_.Used(now);
  records_.Take(events, decisions);
  const bool more_of_one = events.size() == 1 && Coalescer::MayWait(events.front());
  {
    const std::lock_guard lock(mutex_);
    while (!events.empty()) {
      const auto own = FirstRun(events);
      events = events.subspan(own.size());
      const auto found = tasks_.find(own.front().request);
      if (found == tasks_.end()) continue;
      const bool hold = coalescer_.Holds(own, now);
      const bool ends = IsTerminal(own.back());
      const bool idle = found->second->Deliver(own, now);
      if (hold) {
        if (idle) coalescer_.Add(found->second);
      } else if (idle || coalescer_.Remove(found->second)) {
        due_.push_back(found->second);
      }
      if (ends) tasks_.erase(found);
    }
    coalescer_.TakeDue(now, due_);
  }
  RunDue(more_of_one);
  TellIfIdle();
}

// Runs a single strand with plain tokens on this thread: waking another costs as much.
void GenerationService::RunDue(bool more_of_one) {
  if (!more_of_one || due_.size() != 1) return pool_.ScheduleAll(due_);
  std::shared_ptr<Strand> strand = std::move(due_.front());
  due_.clear();
  if (strand->RunOnce()) pool_.Schedule(std::move(strand));
}

std::optional<Time> GenerationService::HoldsUntil() const {
  const std::lock_guard lock(mutex_);
  return coalescer_.until();
}

void GenerationService::OnGroupLost(LostGroup lost) {
  if (embedder_ != nullptr) embedder_->queue().Down(lost.group);
  if (facts_.has_adapters) adapters_.Down(lost.group, lost.link->formed().epoch);
  {
    const std::lock_guard lock(mutex_);
    --groups_up_;
    if (groups_up_ == 0 && !draining_) {
      health_ = {Health::kFailed, lost.reason};
    } else if (groups_up_ == 0 && !over_) {  // the launcher may see the end of a shard first
      health_ = {Health::kDraining, "the server is shutting down: " + lost.reason};
    }
    if (groups_up_ == 0) over_ = over_ || !groups_return_;
  }
  FailAllUnlessServed();
  TellIfIdle();
  if (on_lost_) on_lost_(std::move(lost));
}

// The core queues the requests of a lost group again, or fails them. This fails the waiting ones
// when no group will come.
void GenerationService::FailAllUnlessServed() {
  std::vector<std::shared_ptr<Strand>> strands;
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (groups_up_ > 0 || (!over_ && !draining_)) return;
    why = health_.detail;
    for (auto& [id, task] : tasks_) {
      records_.SetState(id, "failed");
      if (task->Fail(Refusal(health_))) strands.push_back(task);
    }
    tasks_.clear();
    coalescer_.TakeAll(strands);
  }
  if (embedder_ != nullptr) embedder_->queue().FailAll(absl::UnavailableError(why));
  pool_.ScheduleAll(strands);
}

// The prompt is any token.
void GenerationService::SubmitProbe(std::shared_ptr<GenerationSink> sink) {
  GenerationRequest request;
  request.client_id = "health";
  request.prompt = std::vector<TokenId>{0};
  request.max_new_tokens = 1;
  request.ignore_eos = true;
  Submit(std::move(request), std::move(sink));
}

// Drops a request that the core does not know.
void GenerationService::Forget(RequestId request) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.erase(request);
  }
  TellIfIdle();
}

void GenerationService::TellIfIdle() {
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex_);
    if (draining_ && tasks_.empty() && open_embeds_ == 0) tell = std::exchange(on_idle_, nullptr);
  }
  if (tell) tell();
}

}  // namespace penstock::router
