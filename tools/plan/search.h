// Searches the settings of a fleet on the virtual clock, with the production core.
//
// The goodput of a setting is the highest rate at which a share of the requests meets the
// objective, found by bisection. Without a demanded rate, every setting uses all machines, and the
// settings are halved over growing prefixes of the trace. With one, bisection finds the fewest
// groups that meet it.
//
// Deterministic: the same trace, seed and options give the same plan, with any number of threads.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/config.h"
#include "sim/fleet/summary.h"
#include "sim/trace/trace.h"
#include "tools/plan/group_type.h"

namespace penstock::plan {

enum class Aim : std::uint8_t { kThroughput, kCost, kPower };

struct Setting {
  const GroupType* type = nullptr;
  std::uint32_t groups = 1;
  std::uint32_t step_tokens = 512;
  scheduler::Order order = scheduler::Order::kFcfs;
  scheduler::AdmissionMode admission = scheduler::AdmissionMode::kGuaranteed;

  std::uint32_t Ranks() const { return groups * static_cast<std::uint32_t>(type->ranks); }
  double Price() const { return Ranks() * type->machine->price; }  // an hour
  double Watts() const { return Ranks() * type->machine->watts; }
  // "h100: 4 groups of 2 ranks, --max-step-tokens 512, ...".
  std::string Text() const;
};

struct Space {
  std::vector<GroupType> types;
  std::vector<std::uint32_t> step_tokens;
  std::vector<scheduler::Order> orders;
  std::vector<scheduler::AdmissionMode> admissions;

  // One for each combination, with the most groups.
  std::vector<Setting> Settings() const;
};

struct Goal {
  Aim aim = Aim::kThroughput;
  sim::Objective slo;
  double share = 0.9;            // of requests that meet it
  std::optional<double> demand;  // requests/s; kThroughput has none
};

struct Load {
  sim::Trace trace;
  bool own_times = false;  // scaled to a rate; else Poisson
  std::uint64_t seed = 1;
  std::optional<std::uint32_t> declared_output;

  // Its first `requests` rows at `rate`.
  sim::Trace AtRate(double rate, std::size_t requests) const;
};

struct Plan {
  Setting setting;
  double goodput = 0;  // requests/s
  double rate = 0;     // at which `summary` was taken: the demand, or the goodput
  sim::Summary summary;

  double CostPer1000() const { return setting.Price() / (rate * 3.6); }
  double WattHoursPer1000() const { return setting.Watts() / (rate * 3.6); }
};

// The first is the better one.
bool Better(const Goal& goal, const Plan& a, const Plan& b);

// Thread-safe.
class Evaluator {
 public:
  Evaluator(const Load& load, const Goal& goal) : load_(load), goal_(goal) {}

  std::uint64_t runs() const { return runs_; }

  absl::StatusOr<sim::Summary> Run(const Setting& setting, double rate, std::size_t requests) const;
  // Whether enough requests meet the objective, while they arrive for half of the run or more. A
  // run that fails does not.
  bool Meets(const Setting& setting, double rate, std::size_t requests) const;
  // 0: it is met at no rate. `near`: an estimate.
  double Goodput(const Setting& setting, std::size_t requests, double precision,
                 std::optional<double> near = std::nullopt) const;
  // The fewest groups of the setting that meet the demand. 0: not even all do.
  std::uint32_t FewestGroups(const Setting& setting, std::size_t requests) const;
  // On the whole trace.
  absl::StatusOr<Plan> Measure(const Setting& setting) const;

 private:
  double Estimate(const Setting& setting) const;

  const Load& load_;
  const Goal& goal_;
  mutable std::atomic<std::uint64_t> runs_{0};
};

// Calls work(i) for each i below `count`, on `threads` threads.
void ForEach(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

struct Found {
  // The best first, at most kFinalists. None is without goodput, and no two have equal figures.
  std::vector<Plan> plans;
  std::size_t settings = 0;
  std::uint64_t runs = 0;  // of the simulator
};

inline constexpr std::size_t kFinalists = 4;

// Uses `threads` threads.
absl::StatusOr<Found> Search(const Space& space, const Load& load, const Goal& goal,
                             unsigned threads);

}  // namespace penstock::plan
