// What a token of contrastive search costs beside a greedy one (batch of one), for each backend
// that runs on a CPU: JSON on stdout.
//
//   penstock-contrastive-bench MODEL_FOLDER [dtype] [threads] [tokens] [candidates]
//
// Two sequences with the same prompt of 128 tokens, one greedy, one contrastive, take their steps
// in turn, so both meet the same machine. The ratio is of the medians over all steps.
#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/reference/reference_backend.h"
#include "shard/executor/model_executor.h"
#include "shard/model/model.h"
#include "shard/parallel/local_communicator.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kPrompt = 128;
constexpr std::uint32_t kBlock = 16;

struct Options {
  std::string folder;
  DType dtype = DType::kBFloat16;
  std::uint32_t threads = 2;
  std::uint32_t tokens = 64;
  std::uint32_t candidates = 4;
};

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << '\n';
  std::exit(1);
}

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << '\n';
  std::exit(1);
}

std::unique_ptr<Backend> MakeBackend(const Options& options, const Model& model, bool reference) {
  LoadedWeights weights = Must(model.Load(nullptr));
  if (!reference) {
    return Must(
        MakeCpuBackend({model.program, std::move(weights), model.dtype, kBlock, options.threads}));
  }
  ReferenceOptions made;
  made.program = model.program;
  made.weights = std::move(weights);
  made.dtype = model.dtype;
  made.block_size = kBlock;
  made.cpu_threads = options.threads;
  return Must(MakeReferenceBackend(std::move(made)));
}

// Slot 0 is greedy, slot 1 contrastive.
class Duel {
 public:
  Duel(const Options& options, const Model& model, Backend& backend)
      : options_(options), executor_(Settings(model), backend, local_) {
    const std::uint32_t length = kPrompt + options.tokens + 2;
    Must(backend.Prepare({kPrompt, length, 8, options.candidates}, &local_));
    blocks_ = (length + kBlock - 1) / kBlock;
    Must(backend.AllocateCache(2 * blocks_));
  }

  boost::json::object Run() {
    Begin(0, SamplingParams());
    SamplingParams contrastive;
    contrastive.penalty_alpha = 0.6f;
    contrastive.top_k = options_.candidates;
    Begin(1, contrastive);
    std::vector<double> times[2];
    for (std::uint32_t i = 0; i < options_.tokens; ++i) {
      for (const std::uint32_t slot : {0u, 1u}) {
        Segment decode;
        decode.slot = SlotId(slot);
        decode.max_rows = slot == 0 ? 1 : options_.candidates;
        times[slot].push_back(Step({decode}, {}));
      }
    }
    const double greedy = Median(times[0]);
    const double searched = Median(times[1]);
    return {{"greedy_us", greedy * 1e6},
            {"contrastive_us", searched * 1e6},
            {"ratio", searched / greedy}};
  }

 private:
  static ExecutorOptions Settings(const Model& model) {
    ExecutorOptions options;
    options.slots = 2;
    options.vocabulary = model.spec.vocabulary;
    options.max_logit_rows = 8;
    return options;
  }

  void Begin(std::uint32_t slot, const SamplingParams& sampling) {
    SequenceStart start;
    start.slot = SlotId(slot);
    start.sequence = SequenceId(slot + 1);
    for (std::uint32_t i = 0; i < kPrompt; ++i) {
      start.prompt.push_back(static_cast<TokenId>(20 + i * 13 % 200));
    }
    start.prompt_length = kPrompt;
    start.sampling = sampling;
    Segment prompt;
    prompt.kind = Segment::Kind::kPrompt;
    prompt.slot = start.slot;
    prompt.count = kPrompt;
    prompt.logits = Segment::Logits::kLast;
    Step({prompt}, {start});
  }

  double Step(std::vector<Segment> segments, std::vector<SequenceStart> starts) {
    StepPlan plan;
    for (const SequenceStart& start : starts) {
      for (std::uint32_t i = 0; i < blocks_; ++i) {
        BlockOp op;
        op.slot = start.slot;
        op.dst = BlockId(start.slot.value() * blocks_ + i);
        plan.block_ops.push_back(op);
      }
    }
    plan.starts = std::move(starts);
    plan.segments = std::move(segments);
    const auto begin = std::chrono::steady_clock::now();
    Must(executor_.Execute(plan).status());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  static double Median(std::vector<double>& times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }

  const Options options_;
  LocalCommunicator local_;
  ModelExecutor executor_;
  std::uint32_t blocks_ = 0;
};

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: penstock-contrastive-bench MODEL_FOLDER [dtype] [threads] [tokens] "
                 "[candidates]\n";
    return 2;
  }
  const auto number = [&](int index, std::uint32_t otherwise) {
    return argc > index ? static_cast<std::uint32_t>(std::atoi(argv[index])) : otherwise;
  };
  Options options;
  options.folder = argv[1];
  if (argc > 2) options.dtype = ParseDType(argv[2]).value_or(options.dtype);
  options.threads = number(3, options.threads);
  options.tokens = number(4, options.tokens);
  options.candidates = number(5, options.candidates);
  const Model model = Must(Model::Open({options.folder, options.dtype}));
  boost::json::object report = {{"model", options.folder},
                                {"parameters", model.parameters},
                                {"dtype", std::string(DTypeName(model.dtype))},
                                {"threads", options.threads},
                                {"candidates", options.candidates},
                                {"tokens", options.tokens}};
  for (const bool reference : {false, true}) {
    const std::unique_ptr<Backend> backend = MakeBackend(options, model, reference);
    report[backend->Name()] = Duel(options, model, *backend).Run();
  }
  std::cout << boost::json::serialize(report) << '\n';
  return 0;
}

}  // namespace
}  // namespace penstock::shard

int main(int argc, char** argv) { return penstock::shard::Main(argc, argv); }
