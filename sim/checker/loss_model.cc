#include "sim/checker/loss_model.h"

#include <algorithm>

namespace penstock::sim {

using scheduler::FailureKind;

bool LossModel::Lose(RequestModel& request, bool in_order) {
  if (request.suspect() && !in_order) {
    oracle_.ExpectFailure(request, FailureKind::kSuspect);
    return false;
  }
  ++untold_;
  request.lost = true;
  request.yielded = false;
  request.losses += in_order ? 0 : 1;
  return true;
}

void LossModel::SetDeadlines(Time now) {
  if (!recovers()) return;
  for (const RequestId id : alive_) {
    RequestModel& request = requests_.at(id);
    if (!request.waiting() || !request.ran()) continue;
    const bool continues = std::ranges::any_of(
        groups_, [&request](const auto& group) { return group.second.Fits(request); });
    if (continues) {
      request.fails_at.reset();
    } else if (!request.fails_at) {
      request.fails_at = now + config_.recovery_timeout;
    }
  }
}

void LossModel::FailOverdue(Time now) {
  for (const RequestId id : alive_) {
    RequestModel& request = requests_.at(id);
    if (!request.waiting() || !request.fails_at || *request.fails_at > now) continue;
    oracle_.ExpectFailure(request, FailureKind::kNoGroup);
  }
}

// Also a request whose last plans are in flight may end the group.
bool LossModel::MayJoin(const RequestModel& request, const GroupModel& group) const {
  if (group.running() == 0 && group.sequences().empty()) return true;
  const auto suspect = [this](const auto& each) {
    return requests_.at(each.second.request).suspect();
  };
  const auto admitted = [&group](const auto& each) {
    return each.second.suspect() && each.second.group == group.id();
  };
  return !request.suspect() && std::ranges::none_of(group.sequences(), suspect) &&
         std::ranges::none_of(requests_, admitted);
}

void LossModel::TakeAdmission(RequestModel& request, const GroupModel& group) const {
  const std::string name = Name(request.arrival.request);
  if (!MayJoin(request, group)) {
    findings_.Add("G10", name + " joins a suspect, or is one and joins others");
  }
  if (!group.SameArithmetic(request)) {
    findings_.Add("G10", name + " continues with other arithmetic");
  }
  request.arithmetic_class = group.arithmetic_class();
}

void LossModel::TakeDecision(const Decision& decision, const RequestModel& request) {
  if (decision.kind != DecisionKind::kLost) return;
  const bool expected = untold_ > 0 && decision.needed == request.losses;
  if (!expected) findings_.Add("G10", Name(decision.request) + " is lost for no reason");
  if (untold_ > 0) --untold_;
}

void LossModel::CheckDecisions() {
  if (untold_ > 0) findings_.Add("G10", "a loss without a decision");
  untold_ = 0;
}

}  // namespace penstock::sim
