// A request's time by kind, as GET /requests/{id} and the traces show it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/request/time_kind.h"
#include "common/time.h"

namespace penstock::router {

using TimeTotals = std::array<Duration, kTimeKinds>;

struct LedgerSpan {
  TimeKind kind = TimeKind::kUpload;
  Time begin;
  Time end;
  std::optional<RequestId> behind = {};  // the request it waits for
  bool behind_other = false;             // another key's request, which is not named
  std::vector<RequestId> beside = {};  // the first requests in its steps; of decodes, with prompts
  std::uint32_t beside_left_out = 0;
  std::uint32_t steps = 0;  // of prefill and decode
};

// The totals are disjoint: their sum is `wall`. Spans of decodes include the time between steps.
struct LedgerView {
  Time begin;
  Duration wall{0};
  bool closed = false;
  TimeKind now = TimeKind::kUpload;   // if it is not closed
  TimeKind most = TimeKind::kUpload;  // with the largest total
  std::optional<RequestId> behind;    // in the longest span of `most`
  bool behind_other = false;          // as in LedgerSpan
  TimeTotals totals{};
  std::vector<LedgerSpan> spans;  // bounded: the first and the newest
  std::uint32_t spans_left_out = 0;
};

// A request in the queue.
struct WaitingView {
  RequestId request;
  std::string tenant;
  std::string client_id;
  TimeKind kind = TimeKind::kQueue;
  std::optional<RequestId> behind = {};
  std::string behind_tenant = {};
  Time since;
};

}  // namespace penstock::router
