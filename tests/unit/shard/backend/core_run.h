// Requests through the real core, the plan checker, the executor and a backend, in one thread, with
// as many plans in flight as the configuration allows.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"
#include "shard/executor/model_executor.h"
#include "shard/parallel/local_communicator.h"
#include "shard/service/plan_checker.h"

namespace penstock::shard {

// What a client gets. Log-probabilities are kept as their bits.
struct Answer {
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> logprobs;
  std::vector<std::uint32_t> prompt_logprobs;
  std::optional<FinishReason> finish;
  friend bool operator==(const Answer&, const Answer&) = default;
};
using Answers = std::map<std::uint64_t, Answer>;  // by request id

// What happened on the way.
struct RunCounts {
  std::uint32_t steps = 0;
  std::uint32_t chunked = 0;    // prompts
  std::uint32_t preempted = 0;  // sequences
  std::uint32_t most_rows = 0;  // of a step
  std::uint64_t cached_tokens = 0;
  std::uint32_t drafted = 0;       // steps with rows of drafts
  std::uint32_t longer_gains = 0;  // decodes that gave more than one token
};

class CoreRun {
 public:
  struct Options {
    scheduler::Config config;
    GroupCapacity capacity;
    ExecutorOptions executor;
    // Rank 0's communicator, if there are several ranks; outlives the run. Null: one rank.
    Communicator* communicator = nullptr;
    // Called before a plan is executed, to give it to the other ranks.
    std::function<void(const StepPlan&)> send_plan;
  };
  using OnStep =
      std::function<void(const StepPlan&, const scheduler::StepInfo&, const StepResult&)>;

  // The backend is prepared and has its cache.
  CoreRun(const Options& options, Backend& backend);

  // Before each step `arriving` says how many more requests come, as far as there are any. Fails
  // the test when a request fails or the requests never end.
  Answers Serve(const std::vector<scheduler::Arrival>& requests,
                const std::function<std::uint32_t()>& arriving, const OnStep& on_step = nullptr);

  // Cancels these requests once they have that many tokens.
  void CancelAfter(std::size_t tokens, std::function<bool(RequestId)> which) {
    cancelled_after_ = tokens;
    cancels_ = std::move(which);
  }

  const RunCounts& counts() const { return counts_; }

 private:
  template <class What>
  void Apply(What what);
  void Listen(const scheduler::Event& event);
  bool ExecuteNext(const OnStep& on_step);

  scheduler::Scheduler core_;
  LocalCommunicator local_;
  const std::function<void(const StepPlan&)> send_plan_;
  ModelExecutor executor_;
  PlanChecker checker_;
  scheduler::Outputs out_;
  Time now_{};
  std::deque<std::pair<StepPlan, scheduler::StepInfo>> plans_;
  Answers answers_;
  RunCounts counts_;
  std::size_t unfinished_ = 0;
  std::size_t cancelled_after_ = 0;
  std::function<bool(RequestId)> cancels_;
  std::vector<RequestId> to_cancel_;
};

}  // namespace penstock::shard
