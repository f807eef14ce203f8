#include "router/dispatch/router_engine.h"

#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "router/dispatch/cached_prompts.h"
#include "router/dispatch/grammar_checker.h"
#include "router/dispatch/held_lanes.h"
#include "router/dispatch/request_records.h"
#include "router/dispatch/request_task.h"
#include "router/dispatch/text_pool.h"

namespace penstock::router {
namespace {

GenerationError Unavailable(std::string message) {
  GenerationError error;
  error.kind = ErrorKind::kUnavailable;
  error.message = std::move(message);
  return error;
}

PromptLimits LimitsOf(const ModelFacts& facts) {
  return {facts.max_input_tokens, facts.max_total_tokens, facts.vocabulary};
}

std::unique_ptr<GrammarChecker> CheckerOf(const ModelFacts& facts,
                                          const RouterEngineOptions& options) {
  if (!facts.has_grammar || !options.grammars) return nullptr;
  return std::make_unique<GrammarChecker>(options.tokenizer, facts.vocabulary, options.eos_ids);
}

bool IsTerminal(const scheduler::Event& event) {
  return std::holds_alternative<scheduler::Finished>(event.what) ||
         std::holds_alternative<scheduler::Failed>(event.what);
}

// The first events, all of one request; the core gives those of one step one after another.
std::span<scheduler::Event> FirstRun(std::span<scheduler::Event> events) {
  std::size_t size = 1;
  while (size < events.size() && events[size].request == events[0].request) ++size;
  return events.first(size);
}

// One job without events, a lane of its own.
class TextJob final : public Lane {
 public:
  explicit TextJob(std::function<void()> work) : work_(std::move(work)) {}
  bool RunOnce() override {
    work_();
    return false;
  }

 private:
  std::function<void()> work_;
};

}  // namespace

class RouterEngine::Impl final : public CoreListener {
 public:
  Impl(RouterEngineOptions options, Metrics& metrics)
      : facts_(std::move(options.facts)),
        prompts_(options.tokenizer, options.chat, LimitsOf(facts_)),
        seeds_(options.seed),
        grammars_(CheckerOf(facts_, options)),
        held_(options.stream_interval),
        services_{
            prompts_,
            grammars_.get(),
            options.tokenizer,
            std::move(options.eos_ids),
            seeds_,
            records_,
            options.show_requests,
            [this](decltype(scheduler::Input::what) what) { return core_.Post(std::move(what)); },
            [this](std::shared_ptr<Lane> lane) { pool_.Schedule(std::move(lane)); },
            [this](RequestId request) { Forget(request); }},
        core_(std::move(options.core), *this, metrics),
        groups_return_(options.groups_return),
        probe_(options.health_probe,
               [this](std::shared_ptr<GenerationSink> sink) { SubmitProbe(std::move(sink)); }),
        pool_(options.text_threads) {}

  ~Impl() override { Stop(); }

  absl::Status Start(std::function<void(LostGroup)> on_lost) {
    on_lost_ = std::move(on_lost);
    return core_.Start();
  }

  void Attach(std::unique_ptr<GroupLink> link) {
    core_.Attach(std::move(link));
    const std::lock_guard lock(mutex_);
    ++groups_up_;
    if (!draining_ && !over_) health_ = {Health::kReady, ""};
  }

  std::size_t Drain(std::function<void()> on_idle) {
    std::size_t open = 0;
    {
      const std::lock_guard lock(mutex_);
      draining_ = true;
      open = tasks_.size();
      on_idle_ = std::move(on_idle);
      if (!over_) health_ = {Health::kDraining, "the server is shutting down"};
    }
    core_.Post(scheduler::Drain{});
    FailAllUnlessServed();
    TellIfIdle();
    return open;
  }

  void Stop() {
    core_.Stop();
    if (grammars_ != nullptr) grammars_->Stop();
    pool_.Stop();
    probe_.Stop();
    const std::lock_guard lock(mutex_);
    tasks_.clear();
  }

  RequestId Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) {
    const Time now = SteadyNow();
    std::shared_ptr<RequestTask> task;
    RequestId id;
    std::string closed;
    {
      const std::lock_guard lock(mutex_);
      id = RequestId(++last_request_);
      records_.Add(id, request.tenant, request.client_id, now);
      task = std::make_shared<RequestTask>(id, std::move(request), std::move(sink), services_, now);
      if (health_.state == Health::kReady) {
        tasks_.emplace(id, task);
      } else {
        closed = health_.detail;
      }
    }
    const bool schedule = closed.empty() ? task->Begin() : task->Fail(Unavailable(closed));
    if (!closed.empty()) records_.SetState(id, "refused");
    if (schedule) pool_.Schedule(std::move(task));
    return id;
  }

  void Cancel(RequestId request) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = tasks_.find(request);
      if (found == tasks_.end()) return;
      found->second->Abandon();
    }
    core_.Post(scheduler::Cancel{request});
  }

  void Render(ChatInput chat, std::function<void(RenderedChat)> done) {
    pool_.Schedule(std::make_shared<TextJob>(
        [this, chat = std::move(chat), done = std::move(done)] { done(prompts_.Render(chat)); }));
  }

  void Tokenize(std::string text, bool add_special_tokens,
                std::function<void(TokenizedText)> done) {
    pool_.Schedule(std::make_shared<TextJob>(
        [this, text = std::move(text), add_special_tokens, done = std::move(done)] {
          done(TokenizeText(prompts_.tokenizer(), text, add_special_tokens));
        }));
  }

  ModelFacts Facts() const { return facts_; }

  HealthReport CheckHealth() const {
    const std::lock_guard lock(mutex_);
    return health_;
  }

  void ProbeHealth(HealthProbe::Answer answer) {
    HealthReport report;
    bool busy = false;
    {
      const std::lock_guard lock(mutex_);
      report = health_;
      busy = !tasks_.empty();
    }
    probe_.Ask(report, busy, std::move(answer));
  }

  absl::StatusOr<RequestRecord> Explain(const std::string& id, const std::string& tenant) const {
    return records_.Find(id, tenant);
  }

  std::vector<CachedPrompt> CachedPrompts(const std::string& tenant) const {
    return cached_prompts_.List(tenant);
  }

  std::size_t ForgetCachedPrompts(const std::string& tenant, std::optional<std::uint64_t> id) {
    const std::size_t count = cached_prompts_.Forget(tenant, id);
    if (count == 0) return 0;
    scheduler::ForgetPrefixes forget{tenant, std::nullopt};
    if (id) forget.made_by = RequestId(*id);
    core_.Post(std::move(forget));
    return count;
  }

 private:
  // --- CoreListener, on the core's thread

  void OnPins(const std::vector<scheduler::PinChange>& changes) override {
    const Time now = SteadyNow();
    for (const scheduler::PinChange& change : changes) {
      CachedPromptList::Owner owner;
      {
        const std::lock_guard lock(mutex_);
        const auto found = tasks_.find(change.made_by);
        if (found != tasks_.end()) {
          owner = {found->second->tenant(), found->second->cached_prompt()};
        }
      }
      cached_prompts_.Take(change, owner, now);
    }
  }

  void OnOutputs(std::span<scheduler::Event> events,
                 std::span<const Decision> decisions) override {
    const Time now = SteadyNow();
    if (!events.empty()) probe_.Used(now);
    records_.Take(events, decisions);
    const bool more_of_one = events.size() == 1 && HeldLanes::MayWait(events.front());
    {
      const std::lock_guard lock(mutex_);
      while (!events.empty()) {
        const auto own = FirstRun(events);
        events = events.subspan(own.size());
        const auto found = tasks_.find(own.front().request);
        if (found == tasks_.end()) continue;
        const bool hold = held_.Holds(own, now);
        const bool ends = IsTerminal(own.back());
        const bool idle = found->second->Deliver(own, now);
        if (hold) {
          if (idle) held_.Add(found->second);
        } else if (idle || held_.Remove(found->second)) {
          lanes_.push_back(found->second);
        }
        if (ends) tasks_.erase(found);
      }
      held_.TakeDue(now, lanes_);
    }
    RunLanes(more_of_one);
    TellIfIdle();
  }

  // More tokens of a single request are dealt with here: to wake another thread costs as much.
  void RunLanes(bool more_of_one) {
    if (!more_of_one || lanes_.size() != 1) return pool_.ScheduleAll(lanes_);
    std::shared_ptr<Lane> lane = std::move(lanes_.front());
    lanes_.clear();
    if (lane->RunOnce()) pool_.Schedule(std::move(lane));
  }

  std::optional<Time> HoldsUntil() const override {
    const std::lock_guard lock(mutex_);
    return held_.until();
  }

  void OnGroupLost(LostGroup lost) override {
    {
      const std::lock_guard lock(mutex_);
      --groups_up_;
      if (groups_up_ == 0 && !draining_) health_ = {Health::kFailed, lost.reason};
      if (groups_up_ == 0) over_ = over_ || !groups_return_;
    }
    FailAllUnlessServed();
    TellIfIdle();
    if (on_lost_) on_lost_(std::move(lost));
  }

  // Those that ran have their error from the core. Those that wait get theirs here once no group
  // will come for them.
  void FailAllUnlessServed() {
    std::vector<std::shared_ptr<Lane>> lanes;
    {
      const std::lock_guard lock(mutex_);
      if (groups_up_ > 0 || (!over_ && !draining_)) return;
      for (auto& [id, task] : tasks_) {
        records_.SetState(id, "failed");
        if (task->Fail(Unavailable(health_.detail))) lanes.push_back(task);
      }
      tasks_.clear();
      held_.TakeAll(lanes);
    }
    pool_.ScheduleAll(lanes);
  }

  // Any token will do for a prompt.
  void SubmitProbe(std::shared_ptr<GenerationSink> sink) {
    GenerationRequest request;
    request.client_id = "health";
    request.prompt = std::vector<TokenId>{0};
    request.max_new_tokens = 1;
    request.ignore_eos = true;
    Submit(std::move(request), std::move(sink));
  }

  // A request that the core does not know.
  void Forget(RequestId request) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.erase(request);
    }
    TellIfIdle();
  }

  void TellIfIdle() {
    std::function<void()> tell;
    {
      const std::lock_guard lock(mutex_);
      if (draining_ && tasks_.empty()) tell = std::exchange(on_idle_, nullptr);
    }
    if (tell) tell();
  }

  const ModelFacts facts_;
  const PromptBuilder prompts_;
  SeedSource seeds_;
  const std::unique_ptr<GrammarChecker> grammars_;  // null: none are offered
  RequestRecords records_;
  CachedPromptList cached_prompts_;
  std::function<void(LostGroup)> on_lost_;

  mutable std::mutex mutex_;
  HealthReport health_{Health::kStarting, "the model is being loaded"};
  std::size_t groups_up_ = 0;
  bool draining_ = false;
  std::function<void()> on_idle_;
  bool over_ = false;  // no group is left and none will come
  std::uint64_t last_request_ = 0;
  // Open requests: from Submit until the core's terminal event.
  std::unordered_map<RequestId, std::shared_ptr<RequestTask>> tasks_;
  HeldLanes held_;
  std::vector<std::shared_ptr<Lane>> lanes_;  // the core's thread alone: its next turn

  const RequestServices services_;
  CoreLoop core_;
  const bool groups_return_;
  HealthProbe probe_;
  TextPool pool_;  // last: its threads use all of the above
};

RouterEngine::RouterEngine(RouterEngineOptions options, Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(options), metrics)) {}
RouterEngine::~RouterEngine() = default;

absl::Status RouterEngine::Start(std::function<void(LostGroup lost)> on_lost) {
  return impl_->Start(std::move(on_lost));
}
void RouterEngine::Attach(std::unique_ptr<GroupLink> link) { impl_->Attach(std::move(link)); }
std::size_t RouterEngine::Drain(std::function<void()> on_idle) {
  return impl_->Drain(std::move(on_idle));
}
void RouterEngine::Stop() { impl_->Stop(); }

RequestId RouterEngine::Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) {
  return impl_->Submit(std::move(request), std::move(sink));
}
void RouterEngine::Render(ChatInput chat, std::function<void(RenderedChat)> done) {
  impl_->Render(std::move(chat), std::move(done));
}
void RouterEngine::Tokenize(std::string text, bool add_special_tokens,
                            std::function<void(TokenizedText)> done) {
  impl_->Tokenize(std::move(text), add_special_tokens, std::move(done));
}
void RouterEngine::Cancel(RequestId request) { impl_->Cancel(request); }
ModelFacts RouterEngine::Facts() const { return impl_->Facts(); }
HealthReport RouterEngine::CheckHealth() const { return impl_->CheckHealth(); }
void RouterEngine::ProbeHealth(std::function<void(const HealthReport&)> answer) {
  impl_->ProbeHealth(std::move(answer));
}
std::vector<CachedPrompt> RouterEngine::CachedPrompts(const std::string& tenant) const {
  return impl_->CachedPrompts(tenant);
}
std::size_t RouterEngine::ForgetCachedPrompts(const std::string& tenant,
                                              std::optional<std::uint64_t> id) {
  return impl_->ForgetCachedPrompts(tenant, id);
}
absl::StatusOr<RequestRecord> RouterEngine::Explain(const std::string& id,
                                                    const std::string& tenant) const {
  return impl_->Explain(id, tenant);
}

}  // namespace penstock::router
