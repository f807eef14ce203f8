// A request in the queue: a new one, or a preempted one with its output so far.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/input.h"
#include "scheduler/order/account.h"

namespace penstock::scheduler {

class TenantQueue;

// What belongs to a request through admission, preemption and restart.
struct Work {
  Arrival request;
  std::uint64_t number = 0;        // order of arrival, from 1; preemptions keep it
  std::vector<TokenId> generated;  // reported tokens
  std::uint32_t preemptions = 0;   // for memory
  bool recomputed = false;         // preempted as it passed the original length (TextRegime)
  bool lost = false;               // its group was lost while it ran
  bool yielded = false;      // gave its place to a request that was due, the last time that it left
  bool due = false;          // was admitted because it had waited too long
  std::uint32_t losses = 0;  // of these, the ones that a request may have caused
  std::uint64_t arithmetic_class = 0;      // of the group that it runs on, or ran on last
  bool started_sent = false;               // the client had its Started event
  std::optional<std::uint32_t> finish_at;  // set by the router: ends with this many tokens
  Account* account = nullptr;              // of Arrival::account; set by the queue, which owns it

  // Two groups were lost while they ran this request, so it may be the cause. It runs alone.
  bool Suspect() const { return losses >= 2; }

  // It has run, so it may have output.
  bool ran() const { return yielded || preemptions > 0 || recomputed || lost; }
  // It comes before all that never ran.
  bool restart() const { return ran() && !yielded; }

  // Rows of each decode with contrastive search; 0 without.
  std::uint32_t Candidates() const { return request.sampling.Candidates(); }

  // Copies the tokens at positions [first, first + count) to `out`.
  void CopyTokens(std::size_t first, std::size_t count, std::vector<TokenId>& out) const {
    const std::size_t prompt = request.prompt.size();
    out.clear();
    for (std::size_t i = first; i < first + count; ++i) {
      out.push_back(i < prompt ? request.prompt[i] : generated[i - prompt]);
    }
  }
};

struct WaitingRequest : Work {
  // Of a request that ran and that no group which is up can continue: it fails at this time.
  std::optional<Time> fails_at;

  // Why it waits, as recorded last, and the request that it waits for.
  Shortage deferred;
  std::optional<RequestId> waits_for;

  // Used by the order: its rank, which never changes while it waits. The smallest is next.
  std::int64_t key = 0;

  // Used by the queue. Requests of a tenant that are no restarts are linked in the order in which
  // they came. `overtaken`: how much more often the request was overtaken than the next younger
  // one. The sum from a request to the youngest is its count.
  TenantQueue* tenant = nullptr;
  WaitingRequest* older = nullptr;
  WaitingRequest* younger = nullptr;
  std::uint64_t overtaken = 0;
  std::uint64_t place = 0;  // in the order in which requests of all tenants came
  std::uint64_t since = 0;  // steps that were made before it came
};

}  // namespace penstock::scheduler
