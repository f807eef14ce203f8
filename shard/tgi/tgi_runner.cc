#include "shard/tgi/tgi_runner.h"

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/service/second_driver.h"

namespace penstock::shard {
namespace {

// Ranks that warm up together need not end together.
constexpr auto kFormingPatience = std::chrono::seconds(120);

bool Offers(const EngineFacts& facts, const char* capability) {
  return std::find(facts.capabilities.begin(), facts.capabilities.end(), capability) !=
         facts.capabilities.end();
}

// Waits for one verdict on the model thread.
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

TgiRunner::TgiRunner(ServiceState& state, RankGate& gate, std::string model_folder)
    : state_(state), gate_(gate), model_folder_(std::move(model_folder)), group_(state) {}

void TgiRunner::Start(TgiCall call) {
  if (calls_.fetch_add(1) >= kMaxSecondCalls) {
    calls_.fetch_sub(1);
    call.done(absl::ResourceExhaustedError("at most " + std::to_string(kMaxSecondCalls) +
                                           " calls may be on their way"));
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
  gate_.Meet(std::move(arrival),
             [this, shared](const RankVerdict& verdict) { Enter(shared, verdict); });
}

// Any thread. Verdicts come in the same order on every rank, and tasks run in the order of posting.
// What failed goes the same way, for it must not end before the calls that hold the seat know it.
void TgiRunner::Enter(std::shared_ptr<TgiCall> call, const RankVerdict& verdict) {
  const bool posted = state_.thread.Post([this, call, verdict] { Run(*call, verdict); });
  if (posted) return;
  state_.formation.EndSecond(false);
  calls_.fetch_sub(1);
  call->done(absl::UnavailableError("the shard is stopping"));
}

void TgiRunner::Run(TgiCall& call, const RankVerdict& verdict) {
  Finish(call, verdict.status.ok() ? RunInGroup(call, verdict) : verdict.status);
}

absl::Status TgiRunner::RunInGroup(TgiCall& call, const RankVerdict& verdict) {
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

void TgiRunner::Finish(TgiCall& call, const absl::Status& status) {
  state_.formation.EndSecond(session_ != nullptr && !session_->empty());
  calls_.fetch_sub(1);
  call.done(status);
}

absl::Status TgiRunner::Form(const std::string& name, Time deadline) {
  {
    std::lock_guard lock(mutex_);
    if (lost_ == name) return absl::UnavailableError("the group was lost, call again");
  }
  const auto agree = [&](std::uint64_t mine) -> absl::StatusOr<std::uint64_t> {
    VerdictWait wait;
    RankArrival arrival;
    arrival.rank = state_.Facts()->rank;
    arrival.call = "form " + name;
    arrival.value = mine;
    arrival.detail = state_.engine.Facts().fingerprint;
    arrival.deadline = std::max(deadline, SteadyNow() + kFormingPatience);
    gate_.Meet(std::move(arrival), [&wait](const RankVerdict& verdict) { wait.Set(verdict); });
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

absl::Status TgiRunner::MakeSession(const TgiGroupFacts& facts) {
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

void TgiRunner::SetMaxPrefillTokens(std::uint32_t tokens) {
  max_prefill_tokens_ = tokens;
  if (session_ != nullptr) session_->SetMaxPrefillTokens(tokens);
}

// A native driver may have taken the idle shard since the last call.
std::string TgiRunner::LostGroup() {
  std::lock_guard lock(mutex_);
  if (!alive_.empty() && !state_.formation.second_formed()) lost_ = std::exchange(alive_, {});
  return lost_;
}

bool TgiRunner::Has(const std::string& group) {
  std::lock_guard lock(mutex_);
  return alive_ == group;
}

void TgiRunner::SetGroup(const std::string& name, bool alive) {
  std::lock_guard lock(mutex_);
  alive_ = alive ? name : std::string();
  if (!alive) lost_ = name;
}

}  // namespace penstock::shard
