#include "tools/plan/search.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <thread>
#include <utility>

#include "common/status.h"
#include "scheduler/order/order_policy.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/forecasts.h"
#include "sim/trace/shape_trace.h"

namespace penstock::plan {
namespace {

constexpr double kFinalPrecision = 0.01;
// The rates of a bisection, around an estimate that knows no objective.
constexpr double kBelow = 1.0 / 64;
constexpr double kAbove = 2;
// How long requests must arrive at a rate, in mean times of a request. A burst that is served
// afterwards says nothing of a rate.
constexpr double kLeastArrivals = 2;

sim::FleetOptions FleetOf(const Setting& setting, const Load& load, const sim::Trace& trace) {
  sim::FleetOptions fleet;
  fleet.config.max_step_tokens = setting.step_tokens;
  fleet.config.max_batch_size = setting.type->capacity.slots;
  fleet.config.max_waiting_requests = sim::kMaxTraceRequests;
  fleet.config.order = setting.order;
  fleet.config.admission = setting.admission;
  fleet.capacity = setting.type->capacity;
  fleet.capacity.max_step_tokens = setting.step_tokens;
  fleet.groups = setting.groups;
  fleet.step_time = setting.type->step_time;
  fleet.warm_up = setting.type->warm_up;
  fleet.declared_output = load.declared_output;
  if (setting.order == scheduler::Order::kShortestPredicted) {
    fleet.forecasts = sim::Forecasts(trace, sim::ForecastError::kLength, 0, 0);
  }
  return fleet;
}

struct Means {
  double prompt = 0;
  double output = 0;
};

Means MeansOf(const sim::Trace& trace) {
  Means means;
  for (const sim::TraceRequest& request : trace.requests) {
    means.prompt += request.prompt_tokens;
    means.output += request.output_tokens;
  }
  const auto count = static_cast<double>(trace.requests.size());
  return {means.prompt / count, std::max(means.output / count, 1.0)};
}

// The price or the power of a plan, by what the goal weighs: of an hour if the rate is demanded.
double Weight(const Goal& goal, const Plan& plan) {
  const bool cost = goal.aim == Aim::kCost;
  if (goal.demand) return cost ? plan.setting.Price() : plan.setting.Watts();
  return cost ? plan.CostPer1000() : plan.WattHoursPer1000();
}

// Whether a policy that `other` changes has no effect on this load.
bool MakesNoDifference(const Plan& plan, const Plan& other) {
  return plan.setting.type == other.setting.type && plan.setting.groups == other.setting.groups &&
         plan.goodput == other.goodput && plan.summary.ttft_ms.mean == other.summary.ttft_ms.mean &&
         plan.summary.inter_token_ms.mean == other.summary.inter_token_ms.mean;
}

// A setting under search. Its plan has no summary yet.
struct Entry {
  Plan plan;
  bool possible = false;
};

class Searcher {
 public:
  Searcher(const Load& load, const Goal& goal, unsigned threads)
      : load_(load), goal_(goal), evaluator_(load, goal), threads_(threads) {}

  absl::StatusOr<Found> Run(const Space& space) {
    Found found;
    std::vector<Entry> entries;
    for (const Setting& setting : space.Settings()) entries.push_back({{setting}, false});
    found.settings = entries.size();
    const std::size_t all = load_.trace.requests.size();
    Round(entries, all / 4, 0.1);
    Keep(entries, entries.size() / 2);
    Round(entries, all / 2, 0.04);
    Keep(entries, entries.size() / 2);
    PENSTOCK_ASSIGN_OR_RETURN(found.plans, Finish(entries));
    found.runs = evaluator_.runs();
    return found;
  }

 private:
  bool Demanded() const { return goal_.demand.has_value(); }

  void Round(std::vector<Entry>& entries, std::size_t requests, double precision) {
    requests = std::max<std::size_t>(requests, 1);
    ForEach(entries.size(), threads_, [&](std::size_t i) {
      Plan& plan = entries[i].plan;
      if (Demanded()) {
        plan.rate = *goal_.demand;
        const std::uint32_t fewest = evaluator_.FewestGroups(plan.setting, requests);
        entries[i].possible = fewest > 0;
        if (fewest > 0) plan.setting.groups = fewest;
        return;
      }
      const std::optional<double> near =
          plan.goodput > 0 ? std::optional(plan.goodput) : std::nullopt;
      plan.goodput = evaluator_.Goodput(plan.setting, requests, precision, near);
      plan.rate = plan.goodput;
      entries[i].possible = plan.goodput > 0;
    });
    std::erase_if(entries, [](const Entry& entry) { return !entry.possible; });
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const Entry& a, const Entry& b) { return Better(goal_, a.plan, b.plan); });
  }

  // With a demanded rate, the next prefix may need more groups than this one.
  void Keep(std::vector<Entry>& entries, std::size_t count) const {
    count = std::max(count, 2 * kFinalists);
    if (entries.size() > count) entries.resize(count);
    for (Entry& entry : entries) {
      if (Demanded()) entry.plan.setting.groups = entry.plan.setting.type->MostGroups();
    }
  }

  absl::StatusOr<std::vector<Plan>> Finish(std::vector<Entry>& entries) {
    if (Demanded()) Round(entries, load_.trace.requests.size(), 0);
    std::vector<absl::StatusOr<Plan>> measured(entries.size(), Plan{});
    ForEach(entries.size(), threads_,
            [&](std::size_t i) { measured[i] = evaluator_.Measure(entries[i].plan.setting); });
    std::vector<Plan> plans;
    for (absl::StatusOr<Plan>& plan : measured) {
      PENSTOCK_RETURN_IF_ERROR(plan.status());
      if (plan->goodput > 0) plans.push_back(*std::move(plan));
    }
    std::stable_sort(plans.begin(), plans.end(),
                     [&](const Plan& a, const Plan& b) { return Better(goal_, a, b); });
    std::vector<Plan> best;
    for (const Plan& plan : plans) {
      const bool equal = std::ranges::any_of(
          best, [&](const Plan& better) { return MakesNoDifference(better, plan); });
      if (!equal && best.size() < kFinalists) best.push_back(plan);
    }
    return best;
  }

  const Load& load_;
  const Goal& goal_;
  const Evaluator evaluator_;
  const unsigned threads_;
};

}  // namespace

void ForEach(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(loop);
  loop();
}

std::string Setting::Text() const {
  const auto view = [](std::string_view text) {
    return absl::string_view(text.data(), text.size());
  };
  return absl::StrCat(type->machine->name, ": ", groups, groups == 1 ? " group" : " groups", " of ",
                      type->ranks, type->ranks == 1 ? " rank" : " ranks", ", --max-step-tokens ",
                      step_tokens, ", --order ", view(OrderName(order)), ", --admission ",
                      view(AdmissionName(admission)));
}

std::vector<Setting> Space::Settings() const {
  std::vector<Setting> settings;
  for (const GroupType& type : types) {
    for (const std::uint32_t tokens : step_tokens) {
      for (const scheduler::Order order : orders) {
        for (const scheduler::AdmissionMode admission : admissions) {
          settings.push_back({&type, type.MostGroups(), tokens, order, admission});
        }
      }
    }
  }
  return settings;
}

sim::Trace Load::AtRate(double rate, std::size_t requests) const {
  sim::Trace part;
  part.block_tokens = trace.block_tokens;
  requests = std::min(requests, trace.requests.size());
  part.requests.assign(trace.requests.begin(),
                       trace.requests.begin() + static_cast<std::ptrdiff_t>(requests));
  if (!own_times) {
    sim::ArriveAtRate(part, rate, seed + 1);
    return part;
  }
  const double seconds =
      std::chrono::duration<double>(part.requests.back().arrival - part.requests.front().arrival)
          .count();
  if (seconds > 0) sim::ScaleTime(part, static_cast<double>(requests - 1) / seconds / rate);
  return part;
}

bool Better(const Goal& goal, const Plan& a, const Plan& b) {
  if (goal.aim != Aim::kThroughput) {
    const double first = Weight(goal, a);
    const double second = Weight(goal, b);
    if (first != second) return first < second;
  }
  if (a.goodput != b.goodput) return a.goodput > b.goodput;
  return a.setting.Ranks() < b.setting.Ranks();
}

absl::StatusOr<sim::Summary> Evaluator::Run(const Setting& setting, double rate,
                                            std::size_t requests) const {
  ++runs_;
  const sim::Trace trace = load_.AtRate(rate, requests);
  PENSTOCK_ASSIGN_OR_RETURN(const sim::FleetResult result,
                            sim::RunFleet(trace, FleetOf(setting, load_, trace)));
  return sim::Summarise(result, goal_.slo);
}

bool Evaluator::Meets(const Setting& setting, double rate, std::size_t requests) const {
  const auto summary = Run(setting, rate, requests);
  if (!summary.ok() || summary->attainment < goal_.share) return false;
  const auto arrived = static_cast<double>(std::min(requests, load_.trace.requests.size()));
  return arrived / rate >= kLeastArrivals * summary->end_to_end_ms.mean / 1000;
}

// What a full batch of mean requests gives, if each step has its share of the prompts.
double Evaluator::Estimate(const Setting& setting) const {
  const Means means = MeansOf(load_.trace);
  const GroupCapacity& capacity = setting.type->capacity;
  const double context = means.prompt + means.output / 2;
  const double held = static_cast<double>(capacity.blocks) * capacity.block_size;
  const double batch = std::clamp(held / context, 1.0, static_cast<double>(capacity.slots));
  scheduler::StepShape step;
  step.AddDecode(static_cast<std::uint64_t>(context), static_cast<std::uint64_t>(batch));
  const double prompts = batch / means.output * means.prompt;
  step.AddChunk(0, static_cast<std::uint64_t>(std::max(prompts, 1.0)));
  sim::StepTime time = setting.type->step_time;  // a copy, since it may draw
  const double seconds = std::max(std::chrono::duration<double>(time(step)).count(), 1e-9);
  return batch / means.output / seconds * setting.groups;
}

double Evaluator::Goodput(const Setting& setting, std::size_t requests, double precision,
                          std::optional<double> near) const {
  const auto good = [&](double rate) { return Meets(setting, rate, requests); };
  if (near) {
    const auto rate = sim::HighestGood(*near * 0.75, *near * 1.25, precision, good);
    if (rate && *rate < *near * 1.25) return *rate;
  }
  const double estimate = Estimate(setting);
  return sim::HighestGood(estimate * kBelow, estimate * kAbove, precision, good).value_or(0);
}

std::uint32_t Evaluator::FewestGroups(const Setting& setting, std::size_t requests) const {
  const auto enough = [&](std::uint32_t groups) {
    Setting with = setting;
    with.groups = groups;
    return Meets(with, *goal_.demand, requests);
  };
  if (!enough(setting.groups)) return 0;
  std::uint32_t few = 0;
  std::uint32_t many = setting.groups;
  while (many - few > 1) {
    const std::uint32_t middle = (few + many) / 2;
    (enough(middle) ? many : few) = middle;
  }
  return many;
}

absl::StatusOr<Plan> Evaluator::Measure(const Setting& setting) const {
  const std::size_t all = load_.trace.requests.size();
  Plan plan{setting};
  plan.goodput = Goodput(setting, all, kFinalPrecision);
  plan.rate = goal_.demand.value_or(plan.goodput);
  if (plan.rate <= 0) return plan;
  PENSTOCK_ASSIGN_OR_RETURN(plan.summary, Run(setting, plan.rate, all));
  return plan;
}

absl::StatusOr<Found> Search(const Space& space, const Load& load, const Goal& goal,
                             unsigned threads) {
  return Searcher(load, goal, threads).Run(space);
}

}  // namespace penstock::plan
