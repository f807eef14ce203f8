// Plays a Scenario: the real core, simulated groups, a virtual clock. Every input that reaches the
// core is shown to an observer together with what came out, so that checker, recorder and twin see
// the same run. The same scenario gives the same inputs, on every machine.
//
// A simulation ends when nobody acts any more: the script is played, all groups are up, and no
// result is on its way. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/scheduler.h"
#include "sim/scenario.h"
#include "sim/sim_group.h"
#include "sim/timeline.h"

namespace penstock::sim {

class Observer {
 public:
  virtual ~Observer() = default;
  // False ends the run.
  virtual bool OnApplied(const scheduler::Input& input, const scheduler::Outputs& out,
                         const scheduler::Snapshot& state) = 0;
};

class Simulation {
 public:
  Simulation(const Scenario& scenario, Observer& observer);

  enum class End : std::uint8_t { kPlayed, kStoppedByObserver, kEndless };
  End Run();

  scheduler::Snapshot state() const { return scheduler_.Inspect(); }
  // Plans that no shard could execute.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Group {
    Epoch epoch;
    std::unique_ptr<SimGroup> shard;  // none while the group is down
    Duration stall{0};
    Time last_delivery{};
    bool mute = false;  // a result was lost: nothing comes any more
    bool lose_next = false;
    Duration away{0};
    std::optional<StepResult> newest;  // that was delivered
  };
  struct Client {
    ClientArrives script;
    std::uint32_t heard = 0;
  };
  struct Delivery {
    GroupId group;
    StepResult result;
  };
  struct Forms {
    GroupId group;
    Epoch after;  // only if the group is still the one that was lost
  };
  struct GivesUp {  // the watchdog
    GroupId group;
    Epoch epoch;
  };
  using What = decltype(scheduler::Input::what);
  using Happening = std::variant<const ScriptEvent*, Delivery, Forms, GivesUp, What>;

  void Apply(What what);
  void Send(const scheduler::PlanOut& plan);
  void Listen(const scheduler::Event& event);
  Duration Jitter(const StepResult& result, std::uint64_t salt) const;

  void Do(const ScriptEvent* event);
  void Do(Delivery& delivery);
  void Do(const Forms& forms);
  void Do(const GivesUp& gives_up);
  void Do(What& what) { Apply(std::move(what)); }

  void Play(const ClientArrives& client);
  void Play(const ClientCancels& cancel) { Apply(scheduler::Cancel{cancel.request}); }
  void Play(const StopStringClaimed& claim);
  void Play(const RankDies& dies);
  void Play(const ResultIsLost& lost);
  void Play(const ResultComesAgain& again);
  void Play(const GroupStalls& stalls);
  void Play(const GroupFormedAnew& anew);
  void Play(const OperatorDrains&) { Apply(scheduler::Drain{}); }
  void Play(const OperatorForgets& what) {
    Apply(scheduler::ForgetPrefixes{what.tenant, what.made_by});
  }

  void Form(GroupId id);
  void Lose(GroupId id, const std::string& reason, Duration away);
  void KeepViolations(Group& group);

  const Scenario& scenario_;
  Observer& observer_;
  scheduler::Scheduler scheduler_;
  Timeline<Happening> timeline_;
  std::map<GroupId, Group> groups_;
  std::map<RequestId, Client> clients_;
  std::vector<std::string> violations_;
  std::uint32_t inputs_ = 0;
  bool stopped_ = false;
};

}  // namespace penstock::sim
