// A request in the queue: fresh from its arrival, or preempted with what it had generated.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/input.h"

namespace penstock::scheduler {

// What a request takes along through admission, preemption and restart.
struct Work {
  Arrival request;
  std::uint64_t number = 0;        // order of arrival, from 1; kept over preemptions
  std::vector<TokenId> generated;  // reported tokens
  std::uint32_t preemptions = 0;
  bool told = false;                       // the client had its Started event
  std::optional<std::uint32_t> finish_at;  // token count set by the router, not reached yet

  // Rows of each decode under contrastive search; 0: it is not contrastive.
  std::uint32_t Candidates() const { return request.sampling.Candidates(); }

  // Prompt and generated tokens at positions [first, first + count); `out` is overwritten.
  void CopyTokens(std::size_t first, std::size_t count, std::vector<TokenId>& out) const {
    const std::size_t prompt = request.prompt.size();
    out.clear();
    for (std::size_t i = first; i < first + count; ++i) {
      out.push_back(i < prompt ? request.prompt[i] : generated[i - prompt]);
    }
  }
};

struct WaitingRequest : Work {
  bool restart() const { return preemptions > 0; }

  // The last recorded reason, so that it is recorded once.
  Shortage deferred;
  std::optional<RequestId> waits_for;

  // The queue's own: requests that never ran, in order of arrival. `overtaken` is how much more
  // often the request was overtaken than the next younger one; sums towards the younger end give
  // the counts.
  WaitingRequest* older = nullptr;
  WaitingRequest* younger = nullptr;
  std::uint64_t overtaken = 0;
};

}  // namespace penstock::scheduler
