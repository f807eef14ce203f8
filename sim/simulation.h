// Plays a Scenario with the real core, simulated groups and a virtual clock. An observer sees every
// input of the core with its outputs, so that the checker, the recorder and the second core see the
// same run. The same scenario gives the same inputs on every machine.
//
// A simulation ends when no event is left: the script was played, all groups are up, and no result
// is in flight. One thread.
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
  // Plans that a shard could not execute.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Group {
    Epoch epoch;
    std::unique_ptr<SimGroup> shard;  // none while the group is down
    Duration stall{0};
    Time last_delivery{};
    bool mute = false;  // a result was lost, so no later one arrives
    bool lose_next = false;
    Duration away{0};
    std::optional<StepResult> newest;  // delivered
    std::deque<StepResult> pending;    // sent, not delivered
    std::map<SequenceId, RequestId> started;
    std::set<RequestId> admitted;  // here last, some not started
  };
  struct Client {
    ClientArrives script;
    std::vector<TokenId> heard;
    bool ended = false;
    bool preempted = false;  // and not admitted since
  };
  struct Delivery {
    GroupId group;
    StepResult result;
  };
  struct Forms {
    GroupId group;
    Epoch after;  // does nothing if the group formed again since this epoch
  };
  struct TimesOut {  // the step timeout
    GroupId group;
    Epoch epoch;
  };
  using What = decltype(scheduler::Input::what);
  using Happening = std::variant<const ScriptEvent*, Delivery, Forms, TimesOut, What>;

  void Apply(What what);
  void Send(const scheduler::PlanOut& plan);
  void Listen(const scheduler::Event& event);
  void DisturbAfter(const Decision& decision);
  void Continue(const Client& client);
  void EndUnnamed(const Group& group);
  void EndByPoison(const scheduler::PlanOut& out, Time at);
  Duration Jitter(const StepResult& result, std::uint64_t salt) const;

  void Do(const ScriptEvent* event);
  void Do(Delivery& delivery);
  void Do(const Forms& forms);
  void Do(const TimesOut& times_out);
  void Do(What& what) { Apply(std::move(what)); }

  void Play(const ClientArrives& client);
  void Play(const ClientCancels& cancel) { Apply(scheduler::Cancel{cancel.request}); }
  void Play(const StopStringFound& claim);
  void Play(const RankIsLost& dies);
  void Play(const ResultIsLost& lost);
  void Play(const ResultIsRepeated& again);
  void Play(const ResultIsEarly& early);
  void Play(const GroupStalls& stalls);
  void Play(const GroupFormsAgain& again);
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
  std::uint32_t poison_left_ = 6;  // groups that it will end
  std::optional<Time> tick_at_;
  bool stopped_ = false;
};

}  // namespace penstock::sim
