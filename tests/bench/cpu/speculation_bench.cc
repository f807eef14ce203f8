// What drafts bring and cost for one stream on the cpu backend: JSON on stdout.
//
//   penstock-speculation-bench MODEL_FOLDER [dtype] [threads] [tokens] [drafts]
//
// Two sequences with the same prompt take their steps in turn, one with drafts, one without, until
// both have all tokens, so both meet the same machine: greedy, sampled at temperature 1, and with a
// bias that makes them say one token for ever, the most that drafts can bring. The answers must be
// the same.
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "shard/backend/cpu/cpu_backend.h"
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
  std::uint32_t tokens = 256;
  std::uint32_t drafts = 4;
};

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << '\n';
  std::exit(1);
}

void Must(const absl::Status& status) {
  if (!status.ok()) Must(absl::StatusOr<int>(status));
}

enum class Text { kGreedy, kSampled, kRepeated };

// Slot 0 has one row, slot 1 drafts.
class Duel {
 public:
  Duel(const Options& options, const Model& model, Backend& backend, Text text)
      : options_(options), executor_(Settings(model), backend, local_) {
    const std::uint32_t length = kPrompt + options.tokens + options.drafts + 1;
    Must(backend.Prepare({kPrompt, length, 16}, &local_));
    blocks_ = (length + kBlock - 1) / kBlock;
    Must(backend.AllocateCache(2 * blocks_));
    sides_[1].rows = 1 + options.drafts;
    for (const std::uint32_t slot : {0u, 1u}) Begin(slot, text);
  }

  boost::json::object Run() {
    while (Goes(0) || Goes(1)) {
      for (const std::uint32_t slot : {0u, 1u}) {
        if (Goes(slot)) Decode(slot);
      }
    }
    if (sides_[0].answer != sides_[1].answer) Must(absl::InternalError("drafts change the answer"));
    const auto tokens = static_cast<double>(options_.tokens);
    return {{"token_us", sides_[0].seconds / tokens * 1e6},
            {"token_us_with_drafts", sides_[1].seconds / tokens * 1e6},
            {"tokens_per_step", tokens / sides_[1].steps},
            {"speed_up", sides_[0].seconds / sides_[1].seconds}};
  }

 private:
  struct Side {
    std::uint32_t rows = 1;
    std::uint32_t steps = 0;
    double seconds = 0;
    std::vector<TokenId> answer;
  };

  static ExecutorOptions Settings(const Model& model) {
    ExecutorOptions options;
    options.slots = 2;
    options.vocabulary = model.spec.vocabulary;
    options.max_logit_rows = 16;
    return options;
  }

  bool Goes(std::uint32_t slot) const { return sides_[slot].answer.size() < options_.tokens; }

  void Begin(std::uint32_t slot, Text text) {
    StepPlan plan;
    SequenceStart start;
    start.slot = SlotId(slot);
    start.sequence = SequenceId(slot + 1);
    for (std::uint32_t i = 0; i < kPrompt; ++i) {
      start.prompt.push_back(static_cast<TokenId>(20 + i * 13 % 200));
    }
    start.prompt_length = kPrompt;
    start.max_new_tokens = options_.tokens;
    start.sampling.do_sample = text == Text::kSampled;
    if (text == Text::kRepeated) start.sampling.logit_bias = {{25, 100.0f}};
    start.sampling.seed = 7;
    Segment prompt;
    prompt.kind = Segment::Kind::kPrompt;
    prompt.slot = start.slot;
    prompt.count = kPrompt;
    prompt.logits = Segment::Logits::kLast;
    for (std::uint32_t i = 0; i < blocks_; ++i) {
      BlockOp op;
      op.slot = start.slot;
      op.dst = BlockId(slot * blocks_ + i);
      plan.block_ops.push_back(op);
    }
    plan.starts = {std::move(start)};
    plan.segments = {prompt};
    Execute(plan, sides_[slot]);
  }

  void Decode(std::uint32_t slot) {
    StepPlan plan;
    Segment decode;
    decode.slot = SlotId(slot);
    decode.max_rows = sides_[slot].rows;
    plan.segments = {decode};
    const auto begin = std::chrono::steady_clock::now();
    Execute(plan, sides_[slot]);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    sides_[slot].seconds += taken.count();
    ++sides_[slot].steps;
  }

  void Execute(const StepPlan& plan, Side& side) {
    const StepResult result = Must(executor_.Execute(plan));
    for (const SampledToken& token : result.sequences.front().tokens) {
      side.answer.push_back(token.token);
    }
  }

  const Options options_;
  LocalCommunicator local_;
  ModelExecutor executor_;
  std::uint32_t blocks_ = 0;
  Side sides_[2];
};

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: penstock-speculation-bench MODEL_FOLDER [dtype] [threads] [tokens] "
                 "[drafts]\n";
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
  options.drafts = number(5, options.drafts);
  const Model model = Must(Model::Open({options.folder, options.dtype}));
  const auto backend = Must(MakeCpuBackend(
      {model.program, Must(model.Load(nullptr)), model.dtype, kBlock, options.threads}));
  boost::json::object report = {{"model", options.folder},
                                {"parameters", model.parameters},
                                {"dtype", std::string(DTypeName(model.dtype))},
                                {"threads", options.threads},
                                {"drafts", options.drafts},
                                {"tokens", options.tokens}};
  report["greedy"] = Duel(options, model, *backend, Text::kGreedy).Run();
  report["sampled"] = Duel(options, model, *backend, Text::kSampled).Run();
  report["repeated"] = Duel(options, model, *backend, Text::kRepeated).Run();
  std::cout << boost::json::serialize(report) << '\n';
  return 0;
}

}  // namespace
}  // namespace penstock::shard

int main(int argc, char** argv) { return penstock::shard::Main(argc, argv); }
