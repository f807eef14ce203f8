// Predicts which events an input must cause, and compares them with those of the core (G2, G3). An
// input here is a result, a cancellation, a stop string or a lost group. No event may be missing,
// repeated, out of order or unexpected.
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

  // A result for the sequence of a request that has not ended.
  void ExpectResult(RequestModel& request, const SequenceResult& result);
  void ExpectEnd(RequestModel& request, FinishReason reason, std::uint32_t tokens);
  // `message`: as a text for the client; empty: of the core's own making (CheckMessage).
  void ExpectFailure(RequestModel& request, scheduler::FailureKind kind,
                     const std::string& message = "");
  // The request may fail like this, but need not.
  void AllowFailure(const RequestModel& request, scheduler::FailureKind kind);

  // Compares with the events of the core and clears the expectations.
  void Check(const std::vector<scheduler::Event>& events,
             std::map<RequestId, RequestModel>& requests);

 private:
  struct Expected {
    std::vector<std::string> events;  // as text
    std::optional<scheduler::FailureKind> may_fail;
  };

  void Tell(RequestModel& request, const scheduler::Event& event);
  // A refusal tells the client the numbers of its request.
  void CheckMessage(const RequestModel& request, const scheduler::Failed& failed);

  Findings& findings_;
  std::map<RequestId, Expected> expected_;
};

}  // namespace penstock::sim
