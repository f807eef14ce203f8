// Watches a Scheduler from outside: what goes in, what comes out, and what the simulated shards
// make of it. After each input it checks the guarantees of docs/scheduling-guarantees.md that can
// be seen there; each violation is one line that begins with the guarantee's name.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "sim/sim_group.h"

namespace penstock::scheduler {

class Invariants {
 public:
  Invariants(const Config& config, const sim::SimGroupOptions& shard)
      : config_(config), shard_options_(shard) {}

  // After Apply(input, out); `state` is Inspect().
  void Check(const Input& input, const Outputs& out, const Snapshot& state);
  // When nothing is in flight and no input is to come: everybody has ended, everything is free.
  void CheckEnd(const Snapshot& state);

  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Request {
    std::vector<TokenId> output;  // what the shard would say alone
    std::uint32_t max_new_tokens = 0;
    std::uint32_t tokens = 0;  // reported
    bool prompt_logprobs = false;
    bool cancelled = false;
    bool preempted = false;  // and not yet queued again
    StepId preempted_at;
    std::uint32_t preemptions = 0;
    std::set<std::uint32_t> finish_at;
    int terminals = 0;
  };
  // A request that has ended with plans in flight: G8 counts the results until its blocks are free.
  struct Retiring {
    GroupId group;
    std::uint32_t results = 0;
  };

  void Complain(const std::string& what) { violations_.push_back(what); }
  void NoteStarts(const PlanOut& plan);
  void NoteInput(const Input& input);
  void CheckEvent(const Event& event);
  void CheckTokens(Request& request, const Tokens& tokens);
  void CheckFinished(Request& request, const Finished& finished);
  void CheckPlan(const PlanOut& plan, const StepInfo& info);
  void CheckDecision(const Decision& decision);
  void CheckRetiring(const Input& input);

  Config config_;
  sim::SimGroupOptions shard_options_;
  std::map<RequestId, Request> requests_;
  std::map<SequenceId, RequestId> sequences_;              // by order of Started events
  std::map<GroupId, std::map<SlotId, SequenceId>> slots_;  // as the plans say
  std::map<GroupId, Epoch> epochs_;
  std::map<RequestId, GroupId> group_of_;
  std::map<RequestId, Retiring> retiring_;
  std::vector<std::string> violations_;
};

// Everything in an Outputs as text, for comparison (G9).
std::string Describe(const Outputs& out);

}  // namespace penstock::scheduler
