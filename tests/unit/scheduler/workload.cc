#include "tests/unit/scheduler/workload.h"

#include <array>
#include <utility>

namespace penstock::scheduler {

WorkloadOptions RandomOptions(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&random](std::uint32_t low, std::uint32_t high) {
    return static_cast<std::uint32_t>(low + random() % (high - low + 1));
  };
  WorkloadOptions options;
  options.seed = seed;
  options.capacity.block_size = draw(1, 8);
  options.capacity.blocks = draw(4, 60);
  options.capacity.slots = draw(1, 10);
  options.capacity.max_sequence_length = draw(20, 200);
  options.config.max_decode_rows = draw(0, 3) == 0 ? draw(2, 4) : 1;
  options.config.max_step_tokens = options.config.max_decode_rows + draw(0, 40);
  options.capacity.max_step_tokens = options.config.max_step_tokens + draw(0, 3);
  options.config.max_batch_prefill_tokens = draw(0, 1) * draw(1, 20);
  options.config.max_batch_total_tokens = draw(0, 2) == 0 ? draw(30, 200) : 0;
  options.config.max_batch_size = draw(0, 2) == 0 ? draw(1, 8) : 0;
  options.config.max_waiting_requests = draw(1, 20);
  options.config.pipeline_depth = draw(1, 3);
  options.config.batching = static_cast<Batching>(draw(0, 2));
  options.config.prefill = static_cast<Prefill>(draw(0, 1));
  options.config.admission = static_cast<Admission>(draw(0, 1));
  options.config.order =
      std::array{Order::kFcfs, Order::kPriority, Order::kShortestPredicted}[draw(0, 2)];
  options.config.max_overtakes = draw(0, 6);
  options.shard.tokens.eos_one_in = draw(0, 1) * draw(3, 30);
  options.shard.error_one_in = draw(0, 3) == 0 ? 8 : 0;
  options.shard.variable_rows = options.config.max_decode_rows > 1;
  options.groups = draw(1, 3);
  return options;
}

Workload::Workload(const WorkloadOptions& options)
    : options_(options),
      random_(options.seed ^ 0x5eed),
      scheduler_(options.config),
      invariants_(options.config, options.shard),
      now_(Duration(1)) {
  for (std::uint32_t i = 0; i < options.groups; ++i) groups_[GroupId(i)];
}

std::uint32_t Workload::Draw(std::uint32_t below) {
  return static_cast<std::uint32_t>(random_() % below);
}

void Workload::Apply(decltype(Input::what) what) {
  now_ += Duration(Draw(1000));
  const Input input{now_, std::move(what)};
  Outputs out;
  scheduler_.Apply(input, out);
  invariants_.Check(input, out, scheduler_.Inspect());
  inputs_.push_back(input);
  transcript_ += Describe(out);
  for (const PlanOut& plan : out.plans) {
    Group& group = groups_[plan.group];
    if (group.shard == nullptr) {
      shard_violations_.push_back("a plan for a group that is down");
      continue;
    }
    group.results.push_back(group.shard->Execute(plan.plan));
  }
}

void Workload::Run() {
  if (!OneIn(4)) BringUp(GroupId(0));
  for (std::uint32_t i = 0; i < options_.inputs; ++i) RandomInput();
  if (OneIn(2)) Apply(Drain{});
  for (auto& [id, group] : groups_) {
    if (group.shard == nullptr) BringUp(id);
  }
  // Every plan yields a result; a request needs finitely many.
  for (std::uint32_t i = 0; i < 100000 && DeliverAny(); ++i) {
  }
  invariants_.CheckEnd(scheduler_.Inspect());
  for (auto& [id, group] : groups_) {
    if (group.shard->sequences() > 0) shard_violations_.push_back("the last ends never came");
  }
}

void Workload::RandomInput() {
  const std::uint32_t dice = Draw(100);
  if (dice < 35) return Arrive();
  if (dice < 85) {
    if (OneIn(4)) DeliverLate();
    DeliverAny();
    return;
  }
  if (options_.faults) return Hurt();
}

void Workload::Arrive() {
  Arrival arrival;
  arrival.request = RequestId(requests_.size() + 1);
  arrival.prompt.assign(1 + Draw(OneIn(5) ? 120 : 20), 7);
  arrival.prompt[0] = static_cast<TokenId>(1000 + Draw(1u << 20));
  arrival.max_new_tokens = 1 + Draw(OneIn(5) ? 80 : 12);
  arrival.length_given = OneIn(2);
  arrival.dialect = static_cast<Dialect>(Draw(5));
  arrival.predicted_tokens = OneIn(3) ? 1 + Draw(40) : 0;
  arrival.priority = static_cast<std::int32_t>(Draw(4));
  arrival.logprobs.prompt_logprobs = OneIn(6);
  requests_.push_back(arrival.request);
  Apply(arrival);
}

void Workload::Hurt() {
  const GroupId group(Draw(options_.groups));
  switch (Draw(5)) {
    case 0:
      if (OneIn(3)) LoseGroup(group);
      return;
    case 1:
      if (groups_[group].shard == nullptr) BringUp(group);
      return;
    case 2:
      return Apply(Tick{});
    case 3:
      if (requests_.empty()) return;
      return Apply(Cancel{requests_[Draw(static_cast<std::uint32_t>(requests_.size()))]});
    default:
      if (requests_.empty()) return;
      const RequestId request =
          requests_[requests_.size() - 1 - Draw(static_cast<std::uint32_t>(requests_.size())) / 4];
      return Apply(FinishAt{request, Draw(10)});
  }
}

bool Workload::DeliverAny() {
  std::vector<GroupId> ready;
  for (auto& [id, group] : groups_) {
    if (!group.results.empty()) ready.push_back(id);
  }
  if (ready.empty()) return false;
  Deliver(ready[Draw(static_cast<std::uint32_t>(ready.size()))]);
  return true;
}

void Workload::Deliver(GroupId id) {
  StepResult result = std::move(groups_[id].results.front());
  groups_[id].results.pop_front();
  Apply(StepDone{id, std::move(result)});
}

void Workload::BringUp(GroupId id) {
  Group& group = groups_[id];
  group.epoch = Epoch(group.epoch.value() + 1);
  group.shard = std::make_unique<sim::SimGroup>(options_.capacity, options_.shard);
  Apply(GroupUp{id, group.epoch, options_.capacity, {}});
}

void Workload::LoseGroup(GroupId id) {
  Group& group = groups_[id];
  if (group.shard == nullptr) return;
  const auto& found = group.shard->violations();
  shard_violations_.insert(shard_violations_.end(), found.begin(), found.end());
  group.shard = nullptr;
  for (StepResult& result : group.results) late_.emplace_back(id, std::move(result));
  group.results.clear();
  Apply(GroupLost{id, group.epoch, "rank 1 of group 0 died"});
}

// Must be ignored, also when the group is up again and has plans of the same numbers in flight.
void Workload::DeliverLate() {
  if (late_.empty()) return;
  const auto [group, result] = std::move(late_.back());
  late_.pop_back();
  Apply(StepDone{group, result});
}

std::vector<std::string> Workload::Violations() const {
  std::vector<std::string> all = invariants_.violations();
  all.insert(all.end(), shard_violations_.begin(), shard_violations_.end());
  for (const auto& [id, group] : groups_) {
    if (group.shard == nullptr) continue;
    const auto& found = group.shard->violations();
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

}  // namespace penstock::scheduler
