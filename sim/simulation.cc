#include "sim/simulation.h"

#include <algorithm>
#include <set>

#include "sim/random.h"

namespace penstock::sim {
namespace {

using scheduler::Event;
using scheduler::GroupUp;
using scheduler::Input;
using scheduler::Outputs;
using scheduler::PlanOut;
using scheduler::Tokens;

// Far more inputs than any script causes, so a run that reaches it would never end.
constexpr std::uint32_t kMostInputs = 20000;
constexpr Duration kStepTimeout{200000};
constexpr const char* kRankLost = "a rank is lost";

SimGroupOptions ShardOptions(const Scenario& scenario) {
  SimGroupOptions options;
  options.tokens.eos_one_in = scenario.eos_one_in;
  options.error_one_in = scenario.error_one_in;
  options.variable_rows = scenario.config.max_decode_rows > 1;
  options.step_time = [&scenario](const StepPlan& plan, std::span<const SegmentLoad> loads) {
    std::uint32_t rows = 0;
    for (const SegmentLoad& load : loads) rows += load.rows;
    const Duration time = scenario.step_base + scenario.step_per_row * rows;
    // Up to 3 % of jitter, and one step in 97 takes three times as long.
    const std::uint64_t dice = Mix(scenario.seed, plan.step.value());
    return (time + time * static_cast<std::int64_t>(dice % 7) / 200) * (dice % 97 == 0 ? 3 : 1);
  };
  return options;
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, Observer& observer)
    : scenario_(scenario), observer_(observer), scheduler_(scenario.config) {
  for (std::uint32_t i = 0; i < scenario.groups.size(); ++i) {
    groups_[GroupId(i)];
    timeline_.At(Time(scenario.up_at[i]), Forms{GroupId(i), Epoch(0)});
  }
  for (const TimedEvent& event : scenario.script) timeline_.At(event.at, &event.what);
}

Simulation::End Simulation::Run() {
  while (!timeline_.empty() && !stopped_) {
    if (inputs_ > kMostInputs) return End::kEndless;
    Happening next = timeline_.Next();
    std::visit([this](auto& what) { Do(what); }, next);
  }
  for (auto& [id, group] : groups_) KeepViolations(group);
  return stopped_ ? End::kStoppedByObserver : End::kPlayed;
}

void Simulation::Apply(What what) {
  if (stopped_) return;
  ++inputs_;
  const Input input{timeline_.now(), std::move(what)};
  Outputs out;
  scheduler_.Apply(input, out);
  stopped_ = !observer_.OnApplied(input, out, scheduler_.Inspect());
  if (stopped_) return;
  for (const PlanOut& plan : out.plans) Send(plan);
  for (const Event& event : out.events) Listen(event);
  for (const Decision& decision : out.decisions) DisturbAfter(decision);
  const std::optional<Time> due = scheduler_.NextDeadline();
  if (due && std::exchange(tick_at_, due) != due) timeline_.At(*due, What(scheduler::Tick{}));
}

// A running request waits for memory, so soon no plan names it. Some end just then. Some groups are
// lost while the last results of a preempted sequence are in flight.
void Simulation::DisturbAfter(const Decision& decision) {
  const auto it = clients_.find(decision.request);
  if (!decision.group || it == clients_.end()) return;
  const bool lost = decision.kind == DecisionKind::kLost;
  if (lost || decision.kind == DecisionKind::kPreempted) it->second.preempted = true;
  if (decision.kind == DecisionKind::kAdmitted) {
    it->second.preempted = false;
    for (auto& [id, group] : groups_) group.admitted.erase(decision.request);
    groups_[*decision.group].admitted.insert(decision.request);
  }
  const auto now = static_cast<std::uint64_t>(timeline_.now().time_since_epoch().count());
  const std::uint64_t dice = Mix(Mix(scenario_.seed, 6), now);
  if (decision.kind == DecisionKind::kPreempted && dice % 12 == 0) {
    timeline_.After(Duration(0), TimesOut{*decision.group, groups_[*decision.group].epoch});
  }
  const bool again = lost || decision.kind == DecisionKind::kPreempted;
  if (again && dice / 12 % 2 == 0) Continue(it->second);
  const auto heard = static_cast<std::uint32_t>(it->second.heard.size());
  if (again && dice / 24 % 4 == 0 && heard > 0) {
    // Two stop strings in text to come. The first one ends the output.
    for (const std::uint32_t more : {3, 4}) {
      timeline_.After(scenario_.step_base / 2,
                      What(scheduler::FinishAt{decision.request, heard + more}));
    }
  }
  const bool waits = decision.kind == DecisionKind::kDeferred && heard > 0;
  if (!waits || dice % 4 == 0) return;
  const Duration soon = (scenario_.step_base + scenario_.network) * (dice / 4 % 8) / 4;
  const scheduler::FinishAt finish{decision.request, heard};
  const scheduler::Cancel cancel{decision.request};
  timeline_.After(soon, dice % 4 == 1 ? What(cancel) : What(finish));
}

// Another request begins with the text of a preempted one so far, which is computed again.
void Simulation::Continue(const Client& client) {
  scheduler::Arrival next = client.script.arrival;
  next.request = RequestId(20000 + next.request.value());
  if (next.request.value() > 40000 || clients_.contains(next.request)) return;
  next.prompt.insert(next.prompt.end(), client.heard.begin(), client.heard.end());
  for (TokenId own = 1; own <= 3; ++own) next.prompt.push_back(own * 7);
  next.max_new_tokens = 4;
  next.min_new_tokens = 0;
  clients_[next.request].script.arrival = next;
  timeline_.After(scenario_.step_base / 2, What(std::move(next)));
}

// Ends requests whose sequence no plan in flight names: they wait for memory or for a place in a
// step, also before they start.
void Simulation::EndUnnamed(const Group& group) {
  const auto now = static_cast<std::uint64_t>(timeline_.now().time_since_epoch().count());
  std::set<RequestId> named;
  for (const StepResult& result : group.pending) {
    for (const SequenceResult& part : result.sequences) {
      const auto started = group.started.find(part.sequence);
      if (started != group.started.end()) named.insert(started->second);
    }
  }
  for (const RequestId request : group.admitted) {
    const auto client = clients_.find(request);
    if (named.contains(request) || client == clients_.end() || client->second.ended) continue;
    const std::uint64_t dice = Mix(Mix(scenario_.seed, now), request.value());
    const auto heard = static_cast<std::uint32_t>(client->second.heard.size());
    const std::uint64_t one_in = client->second.preempted ? 32 : heard == 0 ? 8 : 2;
    if (dice % one_in != 0) continue;
    const bool stops = heard > 0 && dice / 4 % 4 > 0;
    timeline_.After(Duration(0), stops ? What(scheduler::FinishAt{request, heard})
                                       : What(scheduler::Cancel{request}));
  }
}

void Simulation::Send(const PlanOut& out) {
  Group& group = groups_[out.group];
  if (group.shard == nullptr) {
    violations_.push_back("a plan for a group that is down");
    return;
  }
  for (std::size_t i = 0; i < out.plan.starts.size() && i < out.requests.size(); ++i) {
    group.started[out.plan.starts[i].sequence] = out.requests[i];
  }
  SimGroup::Done done = group.shard->Execute(out.plan, timeline_.now());
  group.pending.push_back(done.result);
  // Results arrive in the order of their steps.
  const Time at = std::max(group.last_delivery, done.at + std::exchange(group.stall, Duration(0)) +
                                                    Jitter(done.result, 5));
  group.last_delivery = at;
  timeline_.At(at, Delivery{out.group, std::move(done.result)});
  EndByPoison(out, at);
}

void Simulation::EndByPoison(const PlanOut& out, Time at) {
  for (const RequestId request : out.requests) {
    if (request != scenario_.poison || poison_left_ == 0) continue;
    --poison_left_;
    timeline_.At(at, TimesOut{out.group, out.plan.epoch});
  }
}

Duration Simulation::Jitter(const StepResult& result, std::uint64_t salt) const {
  if (scenario_.network == Duration(0)) return Duration(0);
  const std::uint64_t dice = Mix(Mix(scenario_.seed, salt), result.step.value());
  return Duration(
      static_cast<Duration::rep>(dice % static_cast<std::uint64_t>(scenario_.network.count())));
}

// Plays the router, which finds stop strings and sees clients disconnect.
void Simulation::Listen(const Event& event) {
  const auto* tokens = std::get_if<Tokens>(&event.what);
  const auto it = clients_.find(event.request);
  if (it == clients_.end()) return;
  Client& client = it->second;
  client.ended = client.ended || std::holds_alternative<scheduler::Finished>(event.what) ||
                 std::holds_alternative<scheduler::Failed>(event.what);
  if (tokens == nullptr) return;
  const std::size_t before = client.heard.size();
  for (const SampledToken& token : tokens->tokens) client.heard.push_back(token.token);
  const auto reached = [&](std::size_t at) { return at > before && at <= client.heard.size(); };
  const std::uint32_t known = client.script.stop_known_at;
  if (reached(known > 0 ? known : client.script.stop_string_at)) {
    const scheduler::FinishAt finish{event.request, client.script.stop_string_at};
    timeline_.After(client.script.reaction, What(finish));
    const scheduler::FinishAt later{event.request, client.script.stop_string_at + 1};
    if (known > 0) timeline_.After(client.script.reaction, What(later));  // changes nothing
  }
  if (reached(client.script.gives_up_at)) {
    timeline_.After(client.script.reaction, What(scheduler::Cancel{event.request}));
  }
}

void Simulation::Do(const ScriptEvent* event) {
  std::visit([this](const auto& what) { Play(what); }, *event);
}

void Simulation::Do(Delivery& delivery) {
  Group& group = groups_[delivery.group];
  const bool late = group.shard == nullptr || delivery.result.epoch != group.epoch;
  if (late) {
    if (scenario_.late_results) Apply(scheduler::StepDone{delivery.group, delivery.result});
    return;
  }
  if (std::exchange(group.lose_next, false)) {
    group.mute = true;
    timeline_.After(kStepTimeout, TimesOut{delivery.group, group.epoch});
  }
  if (group.mute) return;
  group.newest = delivery.result;
  group.pending.pop_front();
  Apply(scheduler::StepDone{delivery.group, std::move(delivery.result)});
  if (scenario_.ends_unnamed) EndUnnamed(group);
}

void Simulation::Do(const Forms& forms) {
  const Group& group = groups_[forms.group];
  if (group.shard == nullptr && group.epoch == forms.after) Form(forms.group);
}

void Simulation::Do(const TimesOut& times_out) {
  Group& group = groups_[times_out.group];
  if (group.shard == nullptr || group.epoch != times_out.epoch) return;
  Lose(times_out.group, "no result within the time of a step", group.away);
}

void Simulation::Play(const ClientArrives& client) {
  clients_[client.arrival.request].script = client;
  Apply(client.arrival);
}

// The router finds a stop string in generated text, so not before the first token.
void Simulation::Play(const StopStringFound& claim) {
  const auto it = clients_.find(claim.request);
  if (it != clients_.end() && !it->second.heard.empty()) {
    Apply(scheduler::FinishAt{claim.request, claim.token_count});
  }
}

void Simulation::Play(const RankIsLost& dies) {
  if (groups_[dies.group].shard != nullptr) Lose(dies.group, kRankLost, dies.away);
}

void Simulation::Play(const ResultIsLost& lost) {
  Group& group = groups_[lost.group];
  group.lose_next = group.shard != nullptr && !group.mute;
  group.away = lost.away;
}

void Simulation::Play(const ResultIsRepeated& again) {
  const Group& group = groups_[again.group];
  if (group.newest) Apply(scheduler::StepDone{again.group, *group.newest});
}

void Simulation::Play(const ResultIsEarly& early) {
  const auto& pending = groups_[early.group].pending;
  if (pending.size() > 1) Apply(scheduler::StepDone{early.group, pending[1]});
}

void Simulation::Play(const GroupStalls& stalls) { groups_[stalls.group].stall += stalls.time; }

void Simulation::Play(const GroupFormsAgain& again) {
  KeepViolations(groups_[again.group]);
  const Epoch before = groups_[again.group].epoch;
  Form(again.group);
  Apply(scheduler::GroupLost{again.group, before, "the news of an old epoch comes late"});
}

void Simulation::Form(GroupId id) {
  Group& group = groups_[id];
  const GroupCapacity& capacity = scenario_.groups[id.value()];
  group.epoch = Epoch(group.epoch.value() + 1);
  group.shard = std::make_unique<SimGroup>(capacity, ShardOptions(scenario_));
  group.pending.clear();
  group.started.clear();
  group.admitted.clear();
  group.mute = false;
  group.lose_next = false;
  Apply(GroupUp{id, group.epoch, capacity, scenario_.calibration,
                scenario_.arithmetic_classes[id.value()]});
}

void Simulation::Lose(GroupId id, const std::string& reason, Duration away) {
  Group& group = groups_[id];
  KeepViolations(group);
  group.shard = nullptr;
  group.pending.clear();
  group.started.clear();
  group.admitted.clear();
  group.last_delivery = Time{};
  timeline_.After(away, Forms{id, group.epoch});
  if (scenario_.late_results) {  // the loss is reported once more, after the group formed again
    timeline_.After(away, What(scheduler::GroupLost{id, group.epoch, reason}));
  }
  const bool in_order = Mix(Mix(scenario_.seed, 62), group.epoch.value()) % 6 == 0;
  Apply(scheduler::GroupLost{id, group.epoch, reason, in_order && reason == kRankLost});
}

void Simulation::KeepViolations(Group& group) {
  if (group.shard == nullptr) return;
  const std::vector<std::string>& found = group.shard->violations();
  violations_.insert(violations_.end(), found.begin(), found.end());
}

}  // namespace penstock::sim
