#include "tools/replay/what_if.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "scheduler/order/order_policy.h"
#include "sim/random.h"

namespace penstock::replay {
namespace {

using sim::FleetOptions;
using sim::RecordedRun;

// From the arrival of request `index` until the next one.
Duration Gap(const RecordedRun& run, std::size_t index) {
  const auto& requests = run.trace.requests;
  if (index + 1 == requests.size()) return Duration{0};
  return requests[index + 1].arrival - requests[index].arrival;
}

// In [0, 1).
double Unit(sim::Random& random) { return static_cast<double>(random.Next() >> 11) * 0x1p-53; }

struct Offer {
  sim::TraceRequest request;
  std::uint32_t index = 0;
  std::uint32_t copy = 0;
};

}  // namespace

Workload Multiply(const RecordedRun& run, double factor, std::uint64_t seed) {
  sim::Random random(seed);
  std::vector<Offer> rows;
  for (std::uint32_t i = 0; i < run.trace.requests.size(); ++i) {
    auto copies = static_cast<std::uint32_t>(factor);
    if (Unit(random) < factor - std::floor(factor)) ++copies;
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      Offer row{run.trace.requests[i], i, copy};
      if (copy > 0) {
        const double share = Unit(random);
        row.request.arrival +=
            Duration(std::llround(share * static_cast<double>(Gap(run, i).count())));
      }
      rows.push_back(std::move(row));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Offer& a, const Offer& b) {
    return a.request.arrival < b.request.arrival;
  });
  Workload workload;
  workload.trace.block_tokens = run.trace.block_tokens;
  for (Offer& row : rows) {
    workload.trace.requests.push_back(std::move(row.request));
    workload.request.push_back(row.index);
    workload.copy.push_back(row.copy);
  }
  return workload;
}

FleetOptions AsRecorded(const RecordedRun& run) {
  FleetOptions fleet;
  fleet.config = run.config;
  fleet.config.max_decode_rows = 1;
  fleet.capacity = run.capacity;
  fleet.groups = run.groups;
  fleet.step_time = run.step_time;
  fleet.warm_up = run.warm_up;
  fleet.keep_steps = true;
  return fleet;
}

absl::StatusOr<sim::FleetResult> Simulate(const RecordedRun& run, const Workload& workload,
                                          FleetOptions fleet) {
  fleet.make_request = [&](std::size_t row) {
    scheduler::Arrival arrival = run.requests[workload.request[row]].arrival;
    // Simulated groups sample no text, so nothing but the recorded length may end an answer.
    arrival.ignore_eos = true;
    arrival.stop_token_ids.clear();
    arrival.grammar = {};
    if (workload.copy[row] > 0) absl::StrAppend(&arrival.tenant, "\n", workload.copy[row]);
    return arrival;
  };
  return sim::RunFleet(workload.trace, fleet);
}

std::vector<Change> UsualChanges(const RecordedRun& run) {
  using scheduler::Order;
  std::vector<Change> changes;
  const auto add = [&](std::string text, std::function<void(FleetOptions&)> make) {
    changes.push_back({std::move(text), std::move(make)});
  };
  add(absl::StrCat("--num-replicas ", run.groups + 1), [](FleetOptions& f) { ++f.groups; });
  for (const Order order : {Order::kFcfs, Order::kLongestPrefix, Order::kShortestPredicted}) {
    if (order == run.config.order) continue;
    add("--order " + std::string(OrderName(order)),
        [order](FleetOptions& f) { f.config.order = order; });
  }
  for (const std::uint32_t tokens :
       {run.config.max_step_tokens / 2, run.config.max_step_tokens * 2}) {
    if (tokens == 0) continue;
    add(absl::StrCat("--max-step-tokens ", tokens), [tokens](FleetOptions& f) {
      f.config.max_step_tokens = tokens;
      f.capacity.max_step_tokens = std::max(f.capacity.max_step_tokens, tokens);
    });
  }
  add(absl::StrCat("--blocks ", run.capacity.blocks * 2),
      [](FleetOptions& f) { f.capacity.blocks *= 2; });
  if (run.config.max_batch_size > 0) {
    add(absl::StrCat("--max-batch-size ", run.config.max_batch_size * 2), [](FleetOptions& f) {
      f.config.max_batch_size *= 2;
      f.capacity.slots = std::max(f.capacity.slots, f.config.max_batch_size);
    });
  }
  if (run.config.admission != scheduler::AdmissionMode::kOptimistic) {
    add("--admission optimistic",
        [](FleetOptions& f) { f.config.admission = scheduler::AdmissionMode::kOptimistic; });
  }
  return changes;
}

}  // namespace penstock::replay
