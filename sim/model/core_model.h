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
#include "sim/model/placement_model.h"
#include "sim/model/told.h"
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

  void On(const scheduler::Arrival& arrival, Told& told);
  void On(const scheduler::Cancel& cancel, Told& told);
  void On(const scheduler::FinishAt& finish, Told& told);
  void On(const scheduler::StepDone& done, Told& told);
  void On(const scheduler::GroupUp& up, Told& told);
  void On(const scheduler::GroupLost& lost, Told& told);
  void On(const scheduler::ForgetPrefixes& what, Told& told);
  void On(const scheduler::Drain&, Told&) { draining_ = true; }

  void Lose(GroupId group, Told& told);
  void Requeue(ModelGroup& group, Told& told);
  void EndWaiting(RequestId request, Told& told);
  Decision Say(RequestId request, DecisionKind kind) const;
  void Refuse(RequestId request, const scheduler::Shortage& why, Told& told);

  void MakeSteps(Told& told);
  bool MakeStep(ModelGroup& group, Reach reach, Told& told);
  bool TooFewJoin(ModelGroup& group, Told& told);
  bool AdmitNext(ModelGroup& group, Reach reach, Told& told);
  bool Settle(ModelGroup& group, RequestId request, const Fate& fate, Told& told);
  const ModelWaiting* Candidate(const ModelGroup& group) const;
  const ModelWaiting* NamedByCore(const ModelGroup& group, const Told& told) const;
  bool SomeoneWaits(const ModelGroup& group, Reach reach) const;
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
};

}  // namespace penstock::sim
