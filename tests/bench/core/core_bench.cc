// penstock-core-bench [TRACE]: the cost of the core, as JSON on standard output. TRACE: Mooncake
// rows for the index; without it, generated prompts that share their beginnings.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "common/json_text.h"
#include "common/status.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/shape_trace.h"
#include "tests/bench/core/index_cost.h"
#include "tests/bench/core/rank_cost.h"
#include "tests/bench/core/route_cost.h"
#include "tests/bench/core/split_cost.h"
#include "tests/bench/core/step_cost.h"
#include "tests/bench/usage.h"

namespace {

namespace bench = penstock::bench;
namespace json = boost::json;
namespace sim = penstock::sim;

json::object ToObject(const penstock::Percentiles& microseconds) {
  return {
      {"mean_us", microseconds.mean}, {"p50_us", microseconds.p50}, {"p99_us", microseconds.p99}};
}

json::object ToObject(const bench::StepCost& cost) {
  json::object result = ToObject(cost.microseconds);
  result["allocations_per_step"] = cost.allocations_per_step;
  return result;
}

json::object ToObject(const bench::IndexCost& cost) {
  return {{"ns_per_block_operation", cost.nanoseconds_per_operation},
          {"block_operations_per_second", 1e9 / cost.nanoseconds_per_operation},
          {"block_operations", cost.operations},
          {"hit_rate", cost.hit_rate}};
}

// Reports the run with the lowest median of five, and the median of the slowest. Load from other
// guests of the machine changes within seconds.
json::object BestOfFive(const bench::StepCostOptions& options) {
  bench::StepCost best = bench::MeasureSteps(options);
  double slowest = best.microseconds.p50;
  for (int run = 1; run < 5; ++run) {
    const bench::StepCost cost = bench::MeasureSteps(options);
    slowest = std::max(slowest, cost.microseconds.p50);
    if (cost.microseconds.p50 < best.microseconds.p50) best = cost;
  }
  json::object result = ToObject(best);
  result["slowest_p50_us"] = slowest;
  return result;
}

// 2,000 prompts of up to 64 blocks, each with the beginning of one of 50 long ones and its own
// tail.
sim::Trace SharedBeginnings() {
  sim::Trace trace = sim::UniformTrace(2000, {1, 48}, {1, 1}, 1);
  trace.block_tokens = 512;
  std::uint32_t own = 1'000'000;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    sim::TraceRequest& request = trace.requests[i];
    const std::uint32_t shared = request.prompt_tokens;
    for (std::uint32_t b = 0; b < shared; ++b) {
      request.blocks.push_back(static_cast<std::uint32_t>(i % 50) * 1000 + b);
    }
    for (std::uint32_t b = 0; b < 16; ++b) request.blocks.push_back(own++);
    request.prompt_tokens = static_cast<std::uint32_t>(request.blocks.size()) * trace.block_tokens;
  }
  return trace;
}

}  // namespace

constexpr const char* kUsage =
    "Usage: penstock-core-bench [TRACE]\n\n"
    "Prints the cost of the scheduler core as JSON. TRACE: Mooncake rows for the prefix index;\n"
    "without it prompts are generated.\n";

int main(int argc, char** argv) {
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  auto trace = argc > 1 ? sim::ReadTrace(argv[1]) : SharedBeginnings();
  if (!trace.ok()) {
    std::fprintf(stderr, "%s\n", penstock::Message(trace.status()).c_str());
    return 2;
  }
  const json::object result = {{"split_256_5", ToObject(bench::MeasureSplit(256, 5))},
                               {"split_4096_5", ToObject(bench::MeasureSplit(4096, 5))},
                               {"route_64_groups", ToObject(bench::MeasureRoutes(*trace, 64, 850))},
                               {"step_256_running_4096_queued", BestOfFive({})},
                               {"step_with_churn", BestOfFive({.churn = true})},
                               {"rank_300_tokens", ToObject(bench::MeasureRanks(300))},
                               {"rank_4096_tokens", ToObject(bench::MeasureRanks(4096))},
                               {"index_512", ToObject(bench::MeasureIndex(*trace, 6800, 512))},
                               {"index_16", ToObject(bench::MeasureIndex(*trace, 6800 * 32, 16))}};
  std::printf("%s\n", penstock::JsonText(result).c_str());
  return 0;
}
