#include "tests/bench/core/split_cost.h"

#include <chrono>
#include <random>
#include <utility>
#include <vector>

#include "scheduler/step/batch_splitter.h"

namespace penstock::bench {

Percentiles MeasureSplit(std::uint32_t rows, std::uint32_t splits) {
  std::mt19937 random(1);
  std::vector<scheduler::SplitRow> batch(rows);
  for (scheduler::SplitRow& row : batch) row.length = 1 + random() % 8192;
  scheduler::SplitRule rule;
  rule.objective = scheduler::SplitObjective::kSparsity;
  rule.max_sparsity_ppm = 0;
  rule.max_splits = splits;
  scheduler::BatchSplitter splitter;
  std::vector<double> times;
  for (int run = 0; run < 200; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    splitter.Split(batch, rule);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  return Summarise(std::move(times));
}

}  // namespace penstock::bench
