#include "sim/model/waiting_model.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <variant>

namespace penstock::sim {

using scheduler::Order;
using scheduler::Shortage;

namespace {

std::int64_t RankOf(Order order, const ModelWaiting& request) {
  const scheduler::Arrival& arrival = request.arrival;
  if (order == Order::kLearned) return static_cast<std::int64_t>(request.work);
  if (order == Order::kPriority) return -std::int64_t{arrival.priority};
  if (order != Order::kShortestPredicted) return 0;
  return arrival.predicted_tokens > 0 ? arrival.predicted_tokens : arrival.max_new_tokens;
}

const ModelWaiting* NextTo(const std::vector<const ModelWaiting*>& list,
                           const ModelWaiting& request, std::ptrdiff_t distance) {
  const auto at = std::ranges::find(list, &request) - list.begin() + distance;
  const bool inside = at >= 0 && at < static_cast<std::ptrdiff_t>(list.size());
  return inside ? list[static_cast<std::size_t>(at)] : nullptr;
}

}  // namespace

bool WaitingModel::full() const {
  const auto fresh = std::ranges::count_if(all_, [](const auto& each) { return !each.ran(); });
  return static_cast<std::uint64_t>(fresh) >= config_.max_waiting_requests;
}

const ModelWaiting* WaitingModel::Find(RequestId request) const {
  const auto it = std::ranges::find(all_, request, [](const auto& each) { return each.id(); });
  return it == all_.end() ? nullptr : &*it;
}

std::vector<const ModelWaiting*> WaitingModel::Restarts() const {
  std::vector<const ModelWaiting*> restarts;
  for (const ModelWaiting& each : all_) {
    if (each.restart()) restarts.push_back(&each);
  }
  return restarts;
}

// The requests of an account without restarts, in the order of the queue. For an order that only
// the core knows: in the order of their arrival.
std::vector<const ModelWaiting*> WaitingModel::Ordered(const std::string& account) const {
  std::vector<const ModelWaiting*> ordered;
  for (const ModelWaiting& each : all_) {
    if (!each.restart() && each.arrival.account == account) ordered.push_back(&each);
  }
  std::ranges::stable_sort(
      ordered, {}, [this](const ModelWaiting* each) { return RankOf(config_.order, *each); });
  return ordered;
}

std::vector<const ModelWaiting*> WaitingModel::AsTheyCame() const {
  std::vector<const ModelWaiting*> came;
  for (const ModelWaiting& each : all_) {
    if (!each.restart()) came.push_back(&each);
  }
  std::ranges::sort(came, {}, [](const ModelWaiting* each) { return each->place; });
  return came;
}

std::vector<const ModelWaiting*> WaitingModel::AsTheyCame(const std::string& account) const {
  std::vector<const ModelWaiting*> came = AsTheyCame();
  std::erase_if(came, [&](const ModelWaiting* each) { return each->arrival.account != account; });
  return came;
}

// The accounts that wait: the one that was served least is first, then the one whose first request
// came earlier.
std::vector<std::string> WaitingModel::Turns() const {
  std::vector<std::string> turns;
  for (const ModelWaiting* each : AsTheyCame()) {
    const bool known = std::ranges::find(turns, each->arrival.account) != turns.end();
    if (!known) turns.push_back(each->arrival.account);
  }
  std::ranges::stable_sort(
      turns, {}, [this](const std::string& account) { return accounts_.at(account).served; });
  return turns;
}

const ModelWaiting* WaitingModel::Overlong(const std::string& account) const {
  const auto came = AsTheyCame(account);
  const std::uint32_t most = config_.order == Order::kLearned ? config_.starvation_steps : 0;
  if (came.empty() || most == 0 || steps_ - came.front()->since < most) return nullptr;
  return came.front();
}

const ModelWaiting* WaitingModel::Overlong(const Fits& fits) const {
  const ModelWaiting* const earliest = Earliest(fits);
  if (earliest == nullptr) return nullptr;
  const ModelWaiting* const first = Overlong(earliest->arrival.account);
  return first == earliest ? first : nullptr;
}

const ModelWaiting* WaitingModel::Due(const std::string& account) const {
  std::uint32_t most = config_.max_overtakes;
  if (most == 0) most = config_.max_waiting_requests;
  if (config_.order == Order::kFcfs) most = 0;
  const auto came = AsTheyCame(account);
  if (came.empty()) return nullptr;
  return came.front()->overtaken >= most ? came.front() : Overlong(account);
}

const ModelWaiting* WaitingModel::Earliest(const Fits& fits) const {
  for (const std::string& account : Turns()) {
    for (const ModelWaiting* each : AsTheyCame(account)) {
      if (fits(*each)) return each;
    }
  }
  return nullptr;
}

bool WaitingModel::FrontIsKnown(const Fits& fits) const {
  if (config_.order != Order::kLongestPrefix) return true;
  const ModelWaiting* const earliest = Earliest(fits);
  const auto restarts = Restarts();
  return earliest == nullptr || Due(earliest->arrival.account) != nullptr ||
         std::ranges::any_of(restarts, [&](const ModelWaiting* each) { return fits(*each); });
}

const ModelWaiting* WaitingModel::Front(const Fits& fits) const {
  for (const ModelWaiting* each : Restarts()) {
    if (fits(*each)) return each;
  }
  const ModelWaiting* const earliest = Earliest(fits);
  if (earliest == nullptr) return nullptr;
  const std::string& account = earliest->arrival.account;
  const ModelWaiting* front = Due(account);
  if (front == nullptr && config_.order != Order::kLongestPrefix) front = Ordered(account).front();
  return front == nullptr || fits(*front) ? front : earliest;
}

const ModelWaiting* WaitingModel::Before(const ModelWaiting& request) const {
  if (request.restart()) return NextTo(Restarts(), request, -1);
  if (config_.order == Order::kLongestPrefix) return nullptr;
  const auto ordered = Ordered(request.arrival.account);
  if (const ModelWaiting* before = NextTo(ordered, request, -1)) return before;
  const ModelWaiting* const front = Front([](const ModelRequest&) { return true; });
  return front == &request ? nullptr : front;
}

const ModelWaiting* WaitingModel::After(const ModelWaiting& request) const {
  if (request.restart()) return NextTo(Restarts(), request, 1);
  if (config_.order == Order::kLongestPrefix) return nullptr;
  return NextTo(Ordered(request.arrival.account), request, 1);
}

void WaitingModel::MarkFollower(const ModelWaiting& request) {
  if (const ModelWaiting* after = After(request)) changed_.push_back(after->id());
}

// Without a request in the queue it kept no credit.
void WaitingModel::Join(const ModelRequest& request) {
  const std::string& name = request.arrival.account;
  const auto turns = Turns();
  const bool waits = std::ranges::find(turns, name) != turns.end();
  std::uint64_t least = 0;
  if (!turns.empty()) {
    least = accounts_.at(turns.front()).served;
  } else if (left_last_) {
    least = accounts_.at(*left_last_).served;
  }
  Account& account = accounts_[name];
  if (!request.ran()) account.weight = request.arrival.weight;
  if (!waits) account.served = std::max(account.served, least);
  account_of_[request.id()] = name;
}

// Integers round down at each charge, as the core's do.
void WaitingModel::Charge(const std::string& name, std::uint64_t work) {
  Account& account = accounts_.at(name);
  account.served += work * 65'536 / account.weight;
}

void WaitingModel::ChargeTokens(const std::vector<scheduler::Event>& events) {
  for (const scheduler::Event& event : events) {
    const auto* tokens = std::get_if<scheduler::Tokens>(&event.what);
    const auto account = account_of_.find(event.request);
    if (tokens == nullptr || account == account_of_.end()) continue;
    Charge(account->second, 2 * tokens->tokens.size());
  }
}

void WaitingModel::Add(ModelRequest request, std::uint64_t work) {
  if (!request.restart()) Join(request);
  ModelWaiting waiting;
  waiting.place = ++places_;
  waiting.since = steps_;
  waiting.work = work;
  static_cast<ModelRequest&>(waiting) = std::move(request);
  const auto place = std::ranges::upper_bound(all_, waiting.number, {}, &ModelWaiting::number);
  const ModelWaiting& added = *all_.insert(place, std::move(waiting));
  changed_.push_back(added.id());
  MarkFollower(added);
}

ModelRequest WaitingModel::Take(RequestId request) {
  const auto it = std::ranges::find(all_, request, [](const auto& each) { return each.id(); });
  MarkFollower(*it);
  ModelRequest taken = std::move(*it);
  all_.erase(it);
  if (!taken.restart() && Ordered(taken.arrival.account).empty()) {
    left_last_ = taken.arrival.account;
  }
  return taken;
}

ModelRequest WaitingModel::Remove(RequestId request) { return Take(request); }

ModelRequest WaitingModel::Admit(RequestId request, std::uint64_t tokens) {
  const ModelWaiting& chosen = *Find(request);
  const std::uint32_t most = config_.order == Order::kLearned ? config_.starvation_steps : 0;
  const bool due = !chosen.restart() && most > 0 && steps_ - chosen.since >= most;
  const std::uint64_t place = chosen.place;
  ModelRequest admitted = Take(request);
  admitted.due = due;
  if (admitted.restart()) return admitted;
  const std::string& account = admitted.arrival.account;
  if (!admitted.ran()) Charge(account, tokens);
  for (ModelWaiting& each : all_) {
    const bool passed = !each.restart() && each.arrival.account == account;
    each.overtaken += passed && each.place < place;
  }
  return admitted;
}

void WaitingModel::FinishAt(RequestId request, std::uint32_t tokens) {
  for (ModelWaiting& each : all_) {
    if (each.id() == request) each.finish_at = std::min(tokens, each.finish_at.value_or(tokens));
  }
}

void WaitingModel::SetDeadlines(const Fits& continues, Time now) {
  for (ModelWaiting& each : all_) {
    if (!each.ran() || config_.recovery_timeout == Duration(0)) continue;
    if (continues(each)) {
      each.fails_at.reset();
    } else if (!each.fails_at) {
      each.fails_at = now + config_.recovery_timeout;
    }
  }
}

std::vector<RequestId> WaitingModel::Overdue(Time now) const {
  std::vector<RequestId> overdue;
  for (const ModelWaiting& each : all_) {
    if (each.fails_at && *each.fails_at <= now) overdue.push_back(each.id());
  }
  return overdue;
}

// What is left of a step differs in every step, so only another budget is a new reason there.
bool WaitingModel::Recorded(const ModelWaiting& request, const Shortage& reason,
                            std::optional<RequestId> behind) {
  if (request.reason.budget != reason.budget) return false;
  if (reason.budget == Budget::kStepTokens || reason.budget == Budget::kPrefillTokens) return true;
  return request.reason == reason && request.behind == behind;
}

void WaitingModel::Defer(RequestId request, const Shortage& reason, std::optional<RequestId> behind,
                         Time now, OutputReader& core_outputs) {
  const auto it = std::ranges::find(all_, request, [](const auto& each) { return each.id(); });
  if (Recorded(*it, reason, behind)) return;
  it->reason = reason;
  it->behind = behind;
  Decision decision;
  decision.at = now;
  decision.request = request;
  decision.kind = DecisionKind::kDeferred;
  decision.short_of = reason.budget;
  decision.needed = reason.needed;
  decision.available = reason.available;
  decision.behind = behind;
  core_outputs.Expect(decision);
}

void WaitingModel::MarkAll() {
  for (const ModelWaiting* each : Restarts()) changed_.push_back(each->id());
  for (const ModelWaiting* each : AsTheyCame()) changed_.push_back(each->id());
}

void WaitingModel::Explain(bool group_is_up, Time now, OutputReader& core_outputs) {
  const bool fixed = config_.order != Order::kLongestPrefix;
  for (const auto& [account, served] : accounts_) {
    const auto ordered = Ordered(account);
    if (changed_.empty() || !fixed || ordered.empty()) continue;
    changed_.push_back(ordered.front()->id());
  }
  const Fits any = [](const ModelRequest&) { return true; };
  for (const RequestId id : std::exchange(changed_, {})) {
    const ModelWaiting* const waits = Find(id);
    if (waits == nullptr) continue;
    const Shortage order{Budget::kOrder, 1, 0};
    if (!group_is_up) {
      Defer(id, {Budget::kGroup, 1, 0}, {}, now, core_outputs);
      continue;
    }
    if (!FrontIsKnown(any)) {  // it may be this one, which waits for no other
      const Decision* const next = core_outputs.NextDecision();
      if (next != nullptr && next->request == id) Defer(id, order, {}, now, core_outputs);
      continue;
    }
    if (waits != Front(any)) {
      const ModelWaiting* const before = Before(*waits);
      Defer(id, order, before ? std::optional(before->id()) : std::nullopt, now, core_outputs);
    } else if (waits->reason.budget == Budget::kOrder && waits->behind) {
      const auto it = std::ranges::find(all_, id, [](const auto& each) { return each.id(); });
      it->reason = {};
      it->behind.reset();
    }
  }
}

void WaitingModel::CheckGauges(const scheduler::Snapshot& state) const {
  ExpectEqual("requests waiting", all_.size(), state.waiting);
  std::array<std::uint32_t, kBudgets> own{};
  for (const ModelWaiting& each : all_) ++own[static_cast<std::size_t>(each.reason.budget)];
  for (std::size_t i = 0; i < kBudgets; ++i) {
    ExpectEqual("requests waiting for ", own[i], state.waiting_for[i], BudgetName(Budget(i)));
  }
}

}  // namespace penstock::sim
