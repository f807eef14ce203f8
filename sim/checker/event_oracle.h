// Which events an input must cause. The oracle predicts, from the rules of docs/scheduling-
// guarantees.md, what each request's client hears because of a result, a cancel, a stop string or a
// lost group, and compares: nothing may be missing, doubled, reordered or invented (G2, G3).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/input.h"
#include "scheduler/output.h"
#include "sim/checker/findings.h"
#include "sim/checker/request_model.h"

namespace penstock::sim {

class EventOracle {
 public:
  explicit EventOracle(Findings& findings) : findings_(findings) {}

  // A result for the request's sequence, which neither the client nor a cancel has ended.
  void ExpectResult(RequestModel& request, const SequenceResult& result);
  void ExpectEnd(RequestModel& request, FinishReason reason, std::uint32_t tokens);
  void ExpectFailure(RequestModel& request, scheduler::FailureKind kind);
  // It may fail so, or go on.
  void AllowFailure(const RequestModel& request, scheduler::FailureKind kind);

  // Compares with what the core said, and forgets the expectations.
  void Check(const std::vector<scheduler::Event>& events,
             std::map<RequestId, RequestModel>& requests);

 private:
  struct Expected {
    std::vector<std::string> events;  // in words
    std::optional<scheduler::FailureKind> may_fail;
  };

  void Tell(RequestModel& request, const scheduler::Event& event);

  Findings& findings_;
  std::map<RequestId, Expected> expected_;
};

}  // namespace penstock::sim
