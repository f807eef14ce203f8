#include "sim/checker/share_model.h"

#include <algorithm>
#include <variant>

namespace penstock::sim {
namespace {

constexpr std::uint64_t kParts = 65'536;
constexpr std::uint64_t kWorkOfToken = 2;

}  // namespace

std::pair<std::uint64_t, std::uint64_t> ShareModel::TurnOf(const RequestModel& request) const {
  const auto found = accounts_.find(request.arrival.account);
  if (found == accounts_.end() || found->second.waiting.empty()) return {0, 0};
  return {found->second.served, found->second.waiting.begin()->first};
}

// The least served account among those that have a waiting request which fits the group.
const std::string* ShareModel::Turn(const GroupModel* group) const {
  const std::string* turn = nullptr;
  std::pair<std::uint64_t, std::uint64_t> least;
  for (const auto& [name, account] : accounts_) {
    const bool fits = std::ranges::any_of(account.waiting, [&](const auto& each) {
      return group == nullptr || group->Fits(requests_.at(each.second));
    });
    if (!fits) continue;
    const auto place = std::make_pair(account.served, account.waiting.begin()->first);
    if (turn != nullptr && least <= place) continue;
    turn = &name;
    least = place;
  }
  return turn;
}

// What the requests of an account that ran may still be charged for.
std::uint64_t ShareModel::OutputsLeft(const std::string& account) const {
  std::uint64_t work = 0;
  for (const RequestId id : alive_) {
    const RequestModel& request = requests_.at(id);
    const bool ran = !request.waiting() || request.restart();
    if (!ran || request.arrival.account != account) continue;
    const std::uint32_t most = request.arrival.max_new_tokens;
    work += kWorkOfToken * (most - std::min(most, request.received()));
  }
  return work;
}

void ShareModel::Charge(Account& account, std::uint64_t work) const {
  account.served += work * kParts / account.weight;
}

// What an account was served at least when its first request comes to the queue.
std::uint64_t ShareModel::Floor() const {
  const std::string* turn = Turn(nullptr);
  if (turn == nullptr && last_) turn = &*last_;
  return turn != nullptr ? accounts_.at(*turn).served : 0;
}

void ShareModel::Enter(Account& account, const RequestModel& request, std::uint64_t floor) {
  if (account.waiting.empty() && account.served < floor) {
    account.served = floor;
    account.ahead = OutputsLeft(request.arrival.account) * kParts / account.weight;
  }
  account.waiting.emplace(request.place, request.arrival.request);
}

void ShareModel::Arrive(const RequestModel& request) {
  const std::uint64_t floor = Floor();
  Account& account = accounts_[request.arrival.account];
  uneven_ = uneven_ || (account.weight > 0 && account.weight != request.arrival.weight);
  account.weight = request.arrival.weight;
  Enter(account, request, floor);
}

void ShareModel::Return(const RequestModel& request) {
  const std::uint64_t floor = Floor();
  Enter(accounts_.at(request.arrival.account), request, floor);
}

void ShareModel::Leave(const RequestModel& request) {
  const auto found = accounts_.find(request.arrival.account);
  if (found == accounts_.end() || found->second.waiting.erase(request.place) == 0) return;
  if (found->second.waiting.empty()) last_ = found->first;
}

void ShareModel::TakeOutputs(const scheduler::Outputs& out) {
  for (const auto& event : out.events) {
    const auto* tokens = std::get_if<scheduler::Tokens>(&event.what);
    const auto request = requests_.find(event.request);
    if (tokens == nullptr || request == requests_.end()) continue;
    const auto account = accounts_.find(request->second.arrival.account);
    if (account == accounts_.end()) continue;
    Charge(account->second, kWorkOfToken * tokens->tokens.size());
  }
  cached_.clear();
  for (const auto& plan : out.plans) {
    for (std::size_t i = 0; i < plan.plan.starts.size() && i < plan.requests.size(); ++i) {
      cached_[plan.requests[i]] = plan.plan.starts[i].cached_length;
    }
  }
}

void ShareModel::Admit(const RequestModel& request, const GroupModel& group, bool in_turn) {
  const std::string& name = request.arrival.account;
  const std::string* const turn = Turn(&group);
  const std::string* const first = Turn(nullptr);
  if (in_turn && turn != nullptr && *turn != name) {
    findings_.Add("G11", Name(request.arrival.request) + " of the account \"" + name +
                             "\" is admitted in the turn of \"" + *turn + "\"");
  }
  uneven_ = uneven_ || (first != nullptr && *first != name);
  const auto found = accounts_.find(name);
  if (found == accounts_.end()) return;
  Account& account = found->second;
  const auto cached = cached_.find(request.arrival.request);
  const std::uint64_t known = cached == cached_.end() ? 0 : cached->second;
  const std::uint64_t prompt = request.ran() ? 0 : request.prompt();  // then it was charged before
  const std::uint64_t work = prompt - std::min(known, prompt);
  const std::uint32_t output = request.arrival.max_new_tokens;
  const std::uint64_t outputs =
      OutputsLeft(name) +
      kWorkOfToken * std::uint64_t{output - std::min(output, request.received())};
  account.ahead = (work + outputs) * kParts / account.weight;
  Charge(account, work);
  Leave(request);
}

void ShareModel::CheckBound() const {
  if (uneven_) return;
  for (const auto& [name, account] : accounts_) {
    if (account.waiting.empty()) continue;
    for (const auto& [other, behind] : accounts_) {
      if (behind.waiting.empty() || account.served <= behind.served + account.ahead) continue;
      findings_.Add("G11", "the account \"" + name + "\" was served " +
                               std::to_string((account.served - behind.served) / kParts) +
                               " more than \"" + other + "\", which waits; the bound is " +
                               std::to_string(account.ahead / kParts));
    }
  }
}

}  // namespace penstock::sim
