#include "tests/unit/shard/backend/core_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace penstock::shard {
namespace {

using scheduler::Event;

PlanBounds BoundsOf(const CoreRun::Options& options) {
  PlanBounds bounds;
  bounds.epoch = Epoch(1);
  bounds.vocabulary = options.executor.vocabulary;
  bounds.slots = options.capacity.slots;
  bounds.blocks = options.capacity.blocks;
  if (options.executor.window_tables) {
    bounds.kv_groups = options.executor.kv_groups;
    bounds.window = options.capacity.window;
    bounds.blocks[1] = options.capacity.window_blocks;
  }
  bounds.block_size = options.capacity.block_size;
  bounds.cells = options.capacity.cells;
  bounds.snapshots = options.capacity.snapshots;
  bounds.max_step_tokens = options.capacity.max_step_tokens;
  bounds.max_sequence_length = options.capacity.max_sequence_length;
  bounds.max_decode_rows = options.config.max_decode_rows;
  bounds.max_candidates = options.capacity.max_candidates;
  bounds.watermarks = true;
  return bounds;
}

}  // namespace

CoreRun::CoreRun(const Options& options, Backend& backend)
    : core_(options.config),
      send_plan_(options.send_plan),
      executor_(options.executor, backend,
                options.communicator != nullptr ? *options.communicator : local_),
      checker_(BoundsOf(options)) {
  Apply(scheduler::GroupUp{GroupId(0), Epoch(1), options.capacity, {}});
}

Answers CoreRun::Serve(const std::vector<scheduler::Arrival>& requests,
                       const std::function<std::uint32_t()>& arriving, const OnStep& on_step) {
  std::size_t next = 0;
  unfinished_ = requests.size();
  for (int idle = 0; unfinished_ > 0;) {
    for (std::uint32_t count = arriving(); count > 0 && next < requests.size(); --count) {
      Apply(requests[next++]);
    }
    for (const RequestId request : std::exchange(to_cancel_, {})) Apply(scheduler::Cancel{request});
    if (!plans_.empty()) {
      idle = 0;
      if (!ExecuteNext(on_step)) break;
    } else if (++idle > 1000) {
      ADD_FAILURE() << unfinished_ << " requests never end";
      break;
    }
  }
  plans_.clear();
  return std::move(answers_);
}

bool CoreRun::ExecuteNext(const OnStep& on_step) {
  const auto [plan, info] = std::move(plans_.front());
  plans_.pop_front();
  absl::Status status = checker_.Check(plan);
  if (status.ok()) {
    if (send_plan_) send_plan_(plan);
    auto result = executor_.Execute(plan);
    status = result.ok() ? checker_.Observe(plan, *result) : result.status();
    if (status.ok()) {
      result->epoch = plan.epoch;
      result->step = plan.step;
      if (on_step) on_step(plan, info, *result);
      Apply(scheduler::StepDone{GroupId(0), *std::move(result)});
    }
  }
  EXPECT_TRUE(status.ok()) << status;
  return status.ok();
}

template <class What>
void CoreRun::Apply(What what) {
  now_ = now_ + Duration(1000);
  out_.Clear();
  core_.Apply({now_, std::move(what)}, out_);
  for (std::size_t i = 0; i < out_.plans.size(); ++i) {
    plans_.emplace_back(out_.plans[i].plan, out_.steps[i]);
    ++counts_.steps;
    counts_.drafted += out_.steps[i].decode_rows > out_.steps[i].sequences ? 1 : 0;
    const std::uint32_t rows = out_.steps[i].decode_rows + out_.steps[i].prefill_tokens;
    counts_.most_rows = std::max(counts_.most_rows, rows);
  }
  for (const Decision& decision : out_.decisions) {
    counts_.chunked += decision.kind == DecisionKind::kChunked ? 1 : 0;
    counts_.preempted += decision.kind == DecisionKind::kPreempted ? 1 : 0;
  }
  for (const Event& event : out_.events) Listen(event);
}

void CoreRun::Listen(const Event& event) {
  Answer& answer = answers_[event.request.value()];
  if (const auto* failed = std::get_if<scheduler::Failed>(&event.what)) {
    ADD_FAILURE() << "request " << event.request.value() << ": " << failed->message;
    --unfinished_;
  } else if (const auto* finished = std::get_if<scheduler::Finished>(&event.what)) {
    answer.finish = finished->reason;
    --unfinished_;
  } else if (const auto* started = std::get_if<scheduler::Started>(&event.what)) {
    counts_.cached_tokens += started->cached_tokens;
  } else if (const auto* prompt = std::get_if<scheduler::PromptLogprobs>(&event.what)) {
    for (const float value : prompt->logprobs) {
      answer.prompt_logprobs.push_back(std::bit_cast<std::uint32_t>(value));
    }
  } else if (const auto* tokens = std::get_if<scheduler::Tokens>(&event.what)) {
    counts_.longer_gains += tokens->tokens.size() > 1 ? 1 : 0;
    const bool before = answer.ids.size() < cancelled_after_;
    const bool after = answer.ids.size() + tokens->tokens.size() >= cancelled_after_;
    if (before && after && cancels_(event.request)) to_cancel_.push_back(event.request);
    for (const SampledToken& token : tokens->tokens) {
      answer.ids.push_back(token.token);
      answer.logprobs.push_back(std::bit_cast<std::uint32_t>(token.logprob));
      for (const TokenLogprob& other : token.alternatives) {
        answer.logprobs.push_back(std::bit_cast<std::uint32_t>(other.logprob));
      }
    }
  }
}

}  // namespace penstock::shard
