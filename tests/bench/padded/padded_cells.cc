// How many K/V cells a decode batch takes: padded in one sub-batch, padded and split by each rule,
// and in blocks of 16. The batch has a fixed number of rows. When one ends, the next request of the
// load takes its place, so the rows have different ages.
//
//   penstock-padded-cells [LENGTHS.csv] [ROWS] [REQUESTS]
//
// LENGTHS.csv: a header, then TIMESTAMP,ContextTokens,GeneratedTokens (the ShareGPT lengths of
// NanoFlow). Without it lengths are drawn: log-normal around medians of 36 and 280, cut at 2,048,
// seed 1.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "scheduler/kv/block_table.h"
#include "scheduler/step/decode_sub_batches.h"
#include "tests/bench/usage.h"

namespace penstock {
namespace {

using scheduler::DecodeRow;
using scheduler::DecodeSubBatches;
using scheduler::SplitObjective;
using scheduler::SplitRule;

constexpr std::uint32_t kLongest = 2048;  // prompt and output together

struct Request {
  std::uint32_t prompt = 1;
  std::uint32_t output = 1;
};

std::vector<Request> ReadLengths(const std::string& path) {
  std::vector<Request> requests;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(',');
    const std::size_t second = line.find(',', first + 1);
    if (second == std::string::npos) continue;
    const long prompt = std::atol(line.c_str() + first + 1);
    const long output = std::atol(line.c_str() + second + 1);
    if (prompt < 1 || output < 1 || prompt + output > kLongest) continue;
    requests.push_back({static_cast<std::uint32_t>(prompt), static_cast<std::uint32_t>(output)});
  }
  return requests;
}

std::vector<Request> DrawLengths(std::size_t count) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> prompt(std::log(36.0), 2.0);
  std::lognormal_distribution<double> output(std::log(280.0), 0.9);
  std::vector<Request> requests;
  while (requests.size() < count) {
    const double p = std::ceil(prompt(random));
    const double o = std::ceil(output(random));
    if (p + o > kLongest) continue;
    requests.push_back({static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(o)});
  }
  return requests;
}

struct Layout {
  const char* name;
  SplitRule rule;
};

struct Use {
  std::uint64_t peak = 0;
  std::uint64_t cells = 0;   // summed over steps
  std::uint64_t tokens = 0;  // thereof not padding
  std::uint64_t parts = 0;
  std::uint64_t resplits = 0;
  std::uint64_t moved = 0;
};

// One row per running request; `take` sees the rows of every step.
template <class Take>
std::uint64_t Decode(const std::vector<Request>& load, std::size_t batch, Take take) {
  struct Running {
    std::uint64_t id;
    std::uint64_t length;
    std::uint64_t end;
  };
  std::vector<Running> running;
  std::size_t next = 0;
  std::uint64_t steps = 0;
  for (;; ++steps) {
    std::erase_if(running, [](const Running& one) { return one.length >= one.end; });
    while (running.size() < batch && next < load.size()) {
      const Request& request = load[next];
      running.push_back({next++, request.prompt, std::uint64_t{request.prompt} + request.output});
    }
    if (running.size() < batch) return steps;  // the load runs out: no longer a full batch
    std::vector<DecodeRow> rows;
    for (Running& one : running) {
      ++one.length;
      rows.push_back({SequenceId(one.id + 1), SlotId(0), one.length, 1,
                      static_cast<std::uint32_t>(rows.size())});
    }
    take(rows);
  }
}

Use Split(const std::vector<Request>& load, std::size_t batch, const SplitRule& rule) {
  constexpr std::uint64_t kLaunchCells = 256;
  DecodeSubBatches groups(rule);
  Use use;
  Decode(load, batch, [&](const std::vector<DecodeRow>& rows) {
    use.resplits += groups.Update(rows, kLaunchCells);
    use.peak = std::max(use.peak, groups.Cells());
    use.cells += groups.Cells();
    use.tokens += groups.Tokens();
    use.parts += groups.parts();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (groups.Moved(i)) use.moved += rows[i].length;
    }
  });
  return use;
}

constexpr const char* kUsage =
    "Usage: penstock-padded-cells [LENGTHS.csv] [ROWS] [REQUESTS]\n\n"
    "Prints how many K/V cells a decode batch of ROWS rows (64) takes while it serves REQUESTS\n"
    "requests (2000): padded, padded and split, and in blocks. LENGTHS.csv: a header, then\n"
    "TIMESTAMP,ContextTokens,GeneratedTokens; without it (or \"\") lengths are drawn, seed 1.\n";

int Main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "";
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  const std::size_t batch = argc > 2 ? bench::NumberArgument<std::size_t>("ROWS", argv[2]) : 64;
  const std::size_t count =
      argc > 3 ? bench::NumberArgument<std::size_t>("REQUESTS", argv[3]) : 2000;
  std::vector<Request> load = path.empty() ? DrawLengths(count) : ReadLengths(path);
  if (batch == 0 || count == 0) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (load.size() < batch) {
    std::fprintf(stderr, "penstock-padded-cells: %zu requests in %s, %zu rows asked for\n",
                 load.size(), path.c_str(), batch);
    return 1;
  }
  load.resize(std::min(load.size(), count));
  Use paged;
  const std::uint64_t steps = Decode(load, batch, [&](const std::vector<DecodeRow>& rows) {
    std::uint64_t cells = 0;
    for (const DecodeRow& row : rows) {
      cells += std::uint64_t{scheduler::BlocksFor(row.length, 16)} * 16;
      paged.tokens += row.length;
    }
    paged.peak = std::max(paged.peak, cells);
    paged.cells += cells;
  });
  std::printf("%zu requests, %zu rows, %llu steps; lengths: %s\n\n", load.size(), batch,
              static_cast<unsigned long long>(steps), path.empty() ? "drawn, seed 1" : "given");
  std::printf(
      "| K/V of the decode batch | peak cells | / paged | mean sparsity | mean sub-batches "
      "| splits | cells moved per step |\n|---|---|---|---|---|---|---|\n");
  const auto print = [&](const char* name, const Use& use, bool padded) {
    std::printf("| %s | %llu | %.2f | %.3f |", name, static_cast<unsigned long long>(use.peak),
                static_cast<double>(use.peak) / static_cast<double>(paged.peak),
                1.0 - static_cast<double>(use.tokens) / static_cast<double>(use.cells));
    if (!padded) return void(std::printf(" | | |\n"));
    const auto per_step = static_cast<double>(steps);
    std::printf(" %.1f | %llu | %.0f |\n", static_cast<double>(use.parts) / per_step,
                static_cast<unsigned long long>(use.resplits),
                static_cast<double>(use.moved) / per_step);
  };
  print("paged, blocks of 16", paged, false);
  const Layout layouts[] = {
      {"padded, one sub-batch", {SplitObjective::kCost, 1}},
      {"padded, `sparsity` 0.33, 3 sub-batches", {SplitObjective::kSparsity, 3, 330'000}},
      {"padded, `sparsity` 0.1, 8 sub-batches", {SplitObjective::kSparsity, 8, 100'000}},
      {"padded, `cost`, 3 sub-batches", {SplitObjective::kCost, 3}},
      {"padded, `cost`, 8 sub-batches", {SplitObjective::kCost, 8}},
  };
  for (const Layout& layout : layouts) print(layout.name, Split(load, batch, layout.rule), true);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
