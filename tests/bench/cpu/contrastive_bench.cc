// Cost of a token of contrastive search compared with a greedy one, for each backend that runs on a
// CPU. Prints JSON.
//
//   penstock-contrastive-bench MODEL_FOLDER [dtype] [threads] [tokens] [candidates]
//
// Two sequences with the same prompt, one greedy and one contrastive, take alternate steps. The
// ratio is that of the medians.
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "common/json_text.h"
#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/reference/reference_backend.h"
#include "tests/bench/cpu/duel.h"
#include "tests/bench/usage.h"

namespace penstock::shard {
namespace {

template <class Options>
Options BackendOptions(const Model& model) {
  Options options;
  options.program = model.program;
  options.weights = Must(model.Load(nullptr));
  options.dtype = model.dtype;
  options.block_size = Duel::kBlock;
  return options;
}

std::unique_ptr<Backend> MakeBackend(const DuelArguments& arguments, const Model& model,
                                     bool reference) {
  if (reference) {
    auto options = BackendOptions<ReferenceOptions>(model);
    options.cpu_threads = arguments.threads;
    return Must(MakeReferenceBackend(std::move(options)));
  }
  auto options = BackendOptions<CpuOptions>(model);
  options.threads = arguments.threads;
  return Must(MakeCpuBackend(std::move(options)));
}

double Median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

boost::json::object Compare(const DuelArguments& arguments, const Model& model, Backend& backend) {
  const std::uint32_t candidates = arguments.fifth;
  Duel duel(model, backend, arguments.tokens + 2, candidates);
  const std::uint32_t length = arguments.tokens + 2;
  SamplingParams contrastive;
  contrastive.penalty_alpha = 0.6f;
  contrastive.top_k = candidates;
  duel.Begin(0, SamplingParams(), length);
  duel.Begin(1, contrastive, length);
  std::vector<double> times[2];
  for (std::uint32_t i = 0; i < arguments.tokens; ++i) {
    for (const std::uint32_t side : {0u, 1u}) {
      times[side].push_back(duel.Decode(side, side == 0 ? 1 : candidates).seconds);
    }
  }
  const double greedy = Median(times[0]);
  const double searched = Median(times[1]);
  return {{"greedy_us", greedy * 1e6},
          {"contrastive_us", searched * 1e6},
          {"ratio", searched / greedy}};
}

constexpr const char* kUsage =
    "Usage: penstock-contrastive-bench MODEL_FOLDER [DTYPE] [THREADS] [TOKENS] [CANDIDATES]\n"
    "\n"
    "Prints the cost of a token of contrastive search and of a greedy one as JSON.\n"
    "The defaults are bfloat16, 2, 64 and 4.\n";

int Main(int argc, char** argv) {
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  const DuelArguments arguments = ReadDuelArguments(argc, argv, "candidates", 64);
  const Model model = Must(Model::Open({arguments.folder, arguments.dtype}));
  boost::json::object report = DuelReport(arguments, model, "candidates");
  for (const bool reference : {false, true}) {
    const std::unique_ptr<Backend> backend = MakeBackend(arguments, model, reference);
    report[backend->Name()] = Compare(arguments, model, *backend);
  }
  std::cout << JsonText(report) << '\n';
  return 0;
}

}  // namespace
}  // namespace penstock::shard

int main(int argc, char** argv) { return penstock::shard::Main(argc, argv); }
