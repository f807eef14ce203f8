#include "shard/tgi/tgi_call_runner.h"

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/service/second_driver.h"

namespace penstock::shard {
namespace {

// The ranks need different times for their warm-up.
constexpr auto kFormingTimeout = std::chrono::seconds(120);

bool Offers(const EngineFacts& facts, const char* capability) {
  return std::find(facts.capabilities.begin(), facts.capabilities.end(), capability) !=
         facts.capabilities.end();
}

// Lets the model thread wait for one verdict.
class VerdictWait {
 public:
  void Set(const RankVerdict& verdict) {
    {
      std::lock_guard lock(mutex_);
      verdict_ = verdict;
    }
    changed_.notify_one();
  }
  RankVerdict Get() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return verdict_.has_value(); });
    return *verdict_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<RankVerdict> verdict_;
};

}  // namespace

TgiCallRunner::TgiCallRunner(ServiceState& state, RankBarrier& barrier, std::string model_folder)
    : state_(state), barrier_(barrier), model_folder_(std::move(model_folder)), group_(state) {}

void TgiCallRunner::Start(TgiCall call) {
  if (calls_.fetch_add(1) >= kMaxSecondCalls) {
    calls_.fetch_sub(1);
    call.done(absl::ResourceExhaustedError("at most " + std::to_string(kMaxSecondCalls) +
                                           " calls may be open"));
    return;
  }
  if (absl::Status begun = state_.formation.BeginSecond(); !begun.ok()) {
    calls_.fetch_sub(1);
    call.done(begun);
    return;
  }
  RankArrival arrival;
  arrival.rank = state_.Facts()->rank;
  arrival.call = call.key;
  arrival.lost = LostGroup();
  arrival.deadline = call.deadline;
  auto shared = std::make_shared<TgiCall>(std::move(call));
  barrier_.Arrive(std::move(arrival),
                  [this, shared](const RankVerdict& verdict) { Post(shared, verdict); });
}

// Any thread. Verdicts come in the same order on every rank, and tasks run in the order of posting.
// A failed call takes the same way, so that the model thread alone decides when the lease ends.
void TgiCallRunner::Post(std::shared_ptr<TgiCall> call, const RankVerdict& verdict) {
  const bool posted = state_.thread.Post([this, call, verdict] { Run(*call, verdict); });
  if (posted) return;
  state_.formation.EndSecond(false);
  calls_.fetch_sub(1);
  call->done(absl::UnavailableError("the shard is stopping"));
}

void TgiCallRunner::Run(TgiCall& call, const RankVerdict& verdict) {
  Finish(call, verdict.status.ok() ? RunInGroup(call, verdict) : verdict.status);
}

absl::Status TgiCallRunner::RunInGroup(TgiCall& call, const RankVerdict& verdict) {
  if (!Has(verdict.group)) {
    session_.reset();
    if (call.forms_group) PENSTOCK_RETURN_IF_ERROR(Form(verdict.group, call.deadline));
  }
  const absl::Status status = call.body(session_.get());
  if (session_ == nullptr || !session_->broken()) return status;
  log::Error("the group of generate.v3 is lost: " + Message(status));
  session_.reset();
  SetGroup(verdict.group, false);
  return status;
}

void TgiCallRunner::Finish(TgiCall& call, const absl::Status& status) {
  state_.formation.EndSecond(session_ != nullptr && !session_->empty());
  calls_.fetch_sub(1);
  call.done(status);
}

absl::Status TgiCallRunner::Form(const std::string& name, Time deadline) {
  {
    std::lock_guard lock(mutex_);
    if (lost_ == name) return absl::UnavailableError("the group was lost: retry the call");
  }
  const auto agree = [&](std::uint64_t mine) -> absl::StatusOr<std::uint64_t> {
    VerdictWait wait;
    RankArrival arrival;
    arrival.rank = state_.Facts()->rank;
    arrival.call = "form " + name;
    arrival.value = mine;
    arrival.detail = state_.engine.Facts().fingerprint;
    arrival.deadline = std::max(deadline, SteadyNow() + kFormingTimeout);
    barrier_.Arrive(std::move(arrival), [&wait](const RankVerdict& verdict) { wait.Set(verdict); });
    const RankVerdict verdict = wait.Get();
    PENSTOCK_RETURN_IF_ERROR(verdict.status);
    return verdict.least;
  };
  auto facts = group_.Form(name, agree);
  absl::Status status = facts.status();
  if (status.ok()) status = MakeSession(*facts);
  SetGroup(name, status.ok());
  return status;
}

absl::Status TgiCallRunner::MakeSession(const TgiGroupFacts& facts) {
  if (tokenizer_ == nullptr) {
    if (model_folder_.empty()) {
      return absl::FailedPreconditionError("generate.v3 needs a tokenizer: start with --model-id");
    }
    PENSTOCK_ASSIGN_OR_RETURN(tokenizer_, text::Tokenizer::Load(model_folder_));
  }
  const EngineFacts engine = state_.engine.Facts();
  TgiSessionOptions options;
  options.reports = engine.rank == 0;
  options.slots = facts.slots;
  options.blocks = facts.blocks;
  options.block_size = engine.block_size;
  options.max_step_tokens = facts.max_step_tokens;
  options.limits.vocabulary = engine.vocabulary;
  options.limits.max_sequence_length = engine.max_position;
  options.limits.grammar = Offers(engine, "grammar");
  options.limits.watermark = Offers(engine, "watermark");
  session_ = std::make_unique<TgiSession>(std::move(options), tokenizer_,
                                          [this](StepPlan& plan) { return group_.Run(plan); });
  session_->SetMaxPrefillTokens(max_prefill_tokens_);
  return absl::OkStatus();
}

void TgiCallRunner::SetMaxPrefillTokens(std::uint32_t tokens) {
  max_prefill_tokens_ = tokens;
  if (session_ != nullptr) session_->SetMaxPrefillTokens(tokens);
}

// A native driver may have taken over the idle shard since the last call.
std::string TgiCallRunner::LostGroup() {
  std::lock_guard lock(mutex_);
  if (!formed_.empty() && !state_.formation.second_formed()) lost_ = std::exchange(formed_, {});
  return lost_;
}

bool TgiCallRunner::Has(const std::string& group) {
  std::lock_guard lock(mutex_);
  return formed_ == group;
}

void TgiCallRunner::SetGroup(const std::string& name, bool formed) {
  std::lock_guard lock(mutex_);
  formed_ = formed ? name : std::string();
  if (!formed) lost_ = name;
}

}  // namespace penstock::shard
