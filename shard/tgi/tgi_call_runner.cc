#include "shard/tgi/tgi_call_runner.h"

#include <algorithm>
#include <future>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/service/second_driver.h"

namespace penstock::shard {
namespace {

// The ranks need different times for their warm-up.
constexpr auto kFormingTimeout = std::chrono::seconds(120);

// The sequences, and one more for the health check of TGI's router.
constexpr std::uint32_t kSlots = 256 + 1;
// A longer prefill takes several steps of the engine.
constexpr std::uint32_t kCpuStepTokens = 512;
constexpr std::uint32_t kCudaStepTokens = 2048;

// Native epochs come from the clock, so they never have this value.
constexpr Epoch kEpoch{~std::uint64_t{0}};

std::uint32_t StepTokens(const v1::DescribeResponse& facts) {
  return facts.device() == "cpu" ? kCpuStepTokens : kCudaStepTokens;
}

}  // namespace

TgiCallRunner::TgiCallRunner(ServiceState& state, RankBarrier* barrier, std::string model_folder)
    : state_(state), barrier_(barrier), model_folder_(std::move(model_folder)) {}

void TgiCallRunner::Start(TgiCall call) {
  if (barrier_ == nullptr) {
    return call.done(absl::FailedPreconditionError(
        "generate.v3 on several ranks needs Unix sockets: start with --shard-uds-path"));
  }
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
  arrival.rank = state_.Facts().rank();
  arrival.call = call.key;
  arrival.lost = LostGroup();
  arrival.deadline = call.deadline;
  auto shared = std::make_shared<TgiCall>(std::move(call));
  barrier_->Arrive(std::move(arrival),
                   [this, shared](const RankVerdict& verdict) { Post(shared, verdict); });
}

// Any thread. Verdicts come in the same order on every rank, and tasks run in the order of posting.
// A failed call takes the same way, so that the model thread alone decides when the lease ends.
void TgiCallRunner::Post(std::shared_ptr<TgiCall> call, const RankVerdict& verdict) {
  const bool posted = state_.thread.Post([this, call, verdict] {
    Finish(*call, verdict.status.ok() ? RunInGroup(*call, verdict) : verdict.status);
  });
  if (posted) return;
  state_.formation.EndSecond(false);
  calls_.fetch_sub(1);
  call->done(absl::UnavailableError("the shard is stopping"));
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
  const absl::Status formed = FormGroup(name, deadline);
  SetGroup(name, formed.ok());
  return formed;
}

// Every rank agrees, also one that failed, so that no rank waits for it.
absl::Status TgiCallRunner::FormGroup(const std::string& name, Time deadline) {
  const auto mine = Prepare(name);
  const RankVerdict verdict = Agree(name, mine.ok() ? mine->blocks(0) : 0, deadline);
  PENSTOCK_RETURN_IF_ERROR(mine.status());
  PENSTOCK_RETURN_IF_ERROR(verdict.status);
  if (verdict.least == 0) return absl::InternalError("another rank could not form the group");
  const auto blocks = static_cast<std::uint32_t>(verdict.least);
  // The cells are allocated but not used: these sequences decode in blocks.
  PENSTOCK_RETURN_IF_ERROR(state_.session.Commit({blocks, mine->cells(), 0}).status());
  state_.session.OpenExecute();
  step_ = 0;
  return MakeSession(blocks);
}

absl::StatusOr<v1::WarmupResponse> TgiCallRunner::Prepare(const std::string& name) {
  const v1::DescribeResponse facts = state_.engine.Facts();
  v1::ConfigureRequest setup;
  setup.set_epoch(kEpoch.value());
  setup.set_world_size(facts.world_size());
  setup.set_rank(facts.rank());
  setup.set_rendezvous(name);
  setup.set_fingerprint(facts.fingerprint());
  setup.mutable_limits()->set_max_step_tokens(StepTokens(facts));
  setup.mutable_limits()->set_max_sequences(kSlots);
  setup.mutable_limits()->set_max_sequence_length(facts.max_position());
  // A call then has no Generation for a request whose mask is late.
  setup.mutable_limits()->set_late_masks(true);
  state_.formation.SecondFormed();
  PENSTOCK_RETURN_IF_ERROR(state_.session.Configure(setup));
  return state_.session.Warmup();
}

RankVerdict TgiCallRunner::Agree(const std::string& name, std::uint64_t mine, Time deadline) {
  RankArrival arrival;
  arrival.rank = state_.Facts().rank();
  arrival.call = "form " + name;
  arrival.value = mine;
  arrival.detail = state_.engine.Facts().fingerprint();
  arrival.deadline = std::max(deadline, SteadyNow() + kFormingTimeout);
  const auto verdict = std::make_shared<std::promise<RankVerdict>>();
  barrier_->Arrive(std::move(arrival),
                   [verdict](const RankVerdict& given) { verdict->set_value(given); });
  return verdict->get_future().get();
}

absl::Status TgiCallRunner::MakeSession(std::uint32_t blocks) {
  if (tokenizer_ == nullptr) {
    if (model_folder_.empty()) {
      return absl::FailedPreconditionError("generate.v3 needs a tokenizer: start with --model-id");
    }
    PENSTOCK_ASSIGN_OR_RETURN(tokenizer_, text::Tokenizer::Load(model_folder_));
  }
  const v1::DescribeResponse facts = state_.engine.Facts();
  TgiSessionOptions options;
  options.reports = facts.rank() == 0;
  options.slots = kSlots;
  options.blocks = blocks;
  options.block_size = facts.block_size();
  options.max_step_tokens = StepTokens(facts);
  if (facts.length_rule() == v1::LENGTH_RULE_RECOMPUTE) {
    options.recompute_length = facts.original_length();
  }
  options.limits.vocabulary = facts.vocabulary();
  options.limits.max_sequence_length = facts.max_position();
  options.limits.grammar = Offers(facts, "grammar");
  options.limits.watermark = Offers(facts, "watermark");
  session_ = std::make_unique<TgiSession>(std::move(options), tokenizer_, [this](StepPlan& plan) {
    plan.epoch = kEpoch;
    plan.step = StepId(++step_);
    return state_.session.StepWithTokens(plan);
  });
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
