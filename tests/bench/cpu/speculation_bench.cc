// What drafts bring and cost for one stream on the cpu backend: JSON on stdout.
//
//   penstock-speculation-bench MODEL_FOLDER [dtype] [threads] [tokens] [drafts]
//
// Two sequences with the same prompt take alternate steps, one with drafts and one without. There
// are three cases: greedy, sampled at temperature 1, and a bias that repeats one token, which is
// the best case for drafts. The answers must be the same.
#include <iostream>
#include <vector>

#include "common/json_text.h"
#include "shard/backend/cpu/cpu_backend.h"
#include "tests/bench/cpu/duel.h"
#include "tests/bench/usage.h"

namespace penstock::shard {
namespace {

struct Side {
  std::uint32_t rows = 1;
  std::uint32_t steps = 0;
  double seconds = 0;
  std::vector<TokenId> answer;
};

void Take(const Duel::Step& step, Side& side) {
  side.answer.insert(side.answer.end(), step.tokens.begin(), step.tokens.end());
}

boost::json::object Compare(const DuelArguments& arguments, const Model& model, Backend& backend,
                            const SamplingParams& sampling) {
  const std::uint32_t drafts = arguments.fifth;
  Duel duel(model, backend, arguments.tokens + drafts + 1);
  Side sides[2];
  sides[1].rows = 1 + drafts;
  for (const std::uint32_t i : {0u, 1u}) Take(duel.Begin(i, sampling, arguments.tokens), sides[i]);
  const auto goes = [&](const Side& side) { return side.answer.size() < arguments.tokens; };
  while (goes(sides[0]) || goes(sides[1])) {
    for (const std::uint32_t i : {0u, 1u}) {
      if (!goes(sides[i])) continue;
      const Duel::Step step = duel.Decode(i, sides[i].rows);
      sides[i].seconds += step.seconds;
      ++sides[i].steps;
      Take(step, sides[i]);
    }
  }
  if (sides[0].answer != sides[1].answer) Must(absl::InternalError("drafts change the answer"));
  const auto tokens = static_cast<double>(arguments.tokens);
  return {{"token_us", sides[0].seconds / tokens * 1e6},
          {"token_us_with_drafts", sides[1].seconds / tokens * 1e6},
          {"tokens_per_step", tokens / sides[1].steps},
          {"speed_up", sides[0].seconds / sides[1].seconds}};
}

constexpr const char* kUsage =
    "Usage: penstock-speculation-bench MODEL_FOLDER [DTYPE] [THREADS] [TOKENS] [DRAFTS]\n"
    "\n"
    "Prints the time of a token of one sequence with and without drafts as JSON.\n"
    "The defaults are bfloat16, 2, 256 and 4.\n";

int Main(int argc, char** argv) {
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  const DuelArguments arguments = ReadDuelArguments(argc, argv, "drafts", 256);
  const Model model = Must(Model::Open({arguments.folder, arguments.dtype}));
  CpuOptions cpu;
  cpu.program = model.program;
  cpu.weights = Must(model.Load(nullptr));
  cpu.dtype = model.dtype;
  cpu.block_size = Duel::kBlock;
  cpu.threads = arguments.threads;
  const auto backend = Must(MakeCpuBackend(std::move(cpu)));
  boost::json::object report = DuelReport(arguments, model, "drafts");
  SamplingParams greedy, sampled, repeated;
  sampled.do_sample = true;
  sampled.seed = 7;
  repeated.logit_bias = {{25, 100.0f}};
  report["greedy"] = Compare(arguments, model, *backend, greedy);
  report["sampled"] = Compare(arguments, model, *backend, sampled);
  report["repeated"] = Compare(arguments, model, *backend, repeated);
  std::cout << JsonText(report) << '\n';
  return 0;
}

}  // namespace
}  // namespace penstock::shard

int main(int argc, char** argv) { return penstock::shard::Main(argc, argv); }
