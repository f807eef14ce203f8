// The scheduler core once more, in its simplest form. It gets the same inputs and expects the same
// decisions, plans, information and gauges. Unlike the core it keeps no counts, indexes or caches:
// it looks at everything whenever it needs something. It shares no code with the core but value
// types and the fit of step times.
//
// The order longest-prefix is the core's choice: of the requests that may be next, the model takes
// the one that the core's decisions name, and checks that the core may do with it what it does.
//
// Events are not compared (EventOracle does that). After the first difference the model stops. It
// also stops at a group of more than 1,000 blocks, for which it is too slow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"
#include "scheduler/scheduler.h"
#include "sim/model/expected_lengths.h"
#include "sim/model/model_group.h"
#include "sim/model/output_reader.h"
#include "sim/model/placement_model.h"
#include "sim/model/waiting_model.h"

namespace penstock::sim {

class CoreModel {
 public:
  explicit CoreModel(const scheduler::Config& config)
      : config_(config), waiting_(config), placement_(config) {}

  // Call after the core's Apply(input, out), with its Inspect() as `state`. Returns the first
  // difference between core and model.
  std::optional<std::string> Check(const scheduler::Input& input, const scheduler::Outputs& out,
                                   const scheduler::Snapshot& state);

 private:
  // The groups that a request is offered to.
  enum class Reach { kAll, kIdleFirst, kOwn };
  // What happens to a waiting request when a group makes a step.
  struct Fate {
    enum class Kind { kAdmitted, kRefused, kElsewhere, kDeferred };
    Kind kind = Kind::kDeferred;
    scheduler::Shortage shortage;
    std::optional<RequestId> behind;
    std::uint64_t uncached = 0;
  };
  struct Deferral {
    RequestId request;
    scheduler::Shortage shortage;
    std::optional<RequestId> behind;
  };

  void On(const scheduler::Arrival& arrival, OutputReader& core_outputs);
  void On(const scheduler::Cancel& cancel, OutputReader& core_outputs);
  void On(const scheduler::FinishAt& finish, OutputReader& core_outputs);
  void On(const scheduler::StepDone& done, OutputReader& core_outputs);
  void On(const scheduler::GroupUp& up, OutputReader& core_outputs);
  void On(const scheduler::GroupLost& lost, OutputReader& core_outputs);
  void On(const scheduler::ForgetPrefixes& what, OutputReader& core_outputs);
  void On(const scheduler::Drain&, OutputReader&) { draining_ = true; }
  void On(const scheduler::Tick&, OutputReader&) {}

  void Lose(const scheduler::GroupLost& lost, OutputReader& core_outputs);
  void SetDeadlines();
  void FailOverdue(OutputReader& core_outputs);
  void Requeue(ModelGroup& group, OutputReader& core_outputs);
  // Order learned: steps that the request is expected to take alone.
  std::uint64_t WorkOf(const ModelRequest& request) const;
  void EndWaiting(RequestId request, OutputReader& core_outputs);
  Decision Say(RequestId request, DecisionKind kind) const;
  void Refuse(RequestId request, const scheduler::Shortage& why, OutputReader& core_outputs);

  void MakeSteps(OutputReader& core_outputs);
  bool MakeStep(ModelGroup& group, Reach reach, OutputReader& core_outputs);
  bool TooFewJoin(ModelGroup& group, OutputReader& core_outputs);
  bool AdmitNext(ModelGroup& group, Reach reach, OutputReader& core_outputs);
  bool Settle(ModelGroup& group, RequestId request, const Fate& fate, OutputReader& core_outputs);
  const ModelWaiting* Candidate(const ModelGroup& group) const;
  const ModelWaiting* NamedByCore(const ModelGroup& group, const OutputReader& core_outputs) const;
  bool SomeoneWaits(const ModelGroup& group, Reach reach) const;
  bool TakeDoubtful(const ModelGroup& group, Reach reach);
  void CheckLongestPrefix(const ModelGroup& group, const ModelWaiting& chosen) const;
  WaitingModel::Fits FitsOf(const ModelGroup& group) const;
  Fate FateOf(const ModelWaiting& request, const ModelGroup& group, Reach reach) const;
  std::vector<GroupOffer> Offers(const ModelWaiting& request, const ModelGroup& group,
                                 Reach reach) const;
  std::optional<scheduler::Shortage> WhyNever(const scheduler::Arrival& arrival) const;
  bool AnyIdle() const;
  void CheckState(const scheduler::Snapshot& state) const;

  const scheduler::Config config_;
  Time now_{};
  bool draining_ = false;
  bool stopped_ = false;
  std::uint64_t arrivals_ = 0;
  std::uint64_t sequences_ = 0;
  ExpectedLengths lengths_;
  std::map<GroupId, ModelGroup> groups_;
  WaitingModel waiting_;
  PlacementModel placement_;
  // Longest-prefix order: a deferral that the model counted for one group during this input. That
  // group may instead have deferred another request a second time, which emits no decision. In that
  // case a later group emits this one.
  std::optional<Deferral> doubtful_;
};

}  // namespace penstock::sim
