#include "tests/bench/cpu/duel.h"

#include <chrono>

#include "tests/bench/usage.h"

namespace penstock::shard {
namespace {

ExecutorOptions Settings(const Model& model) {
  ExecutorOptions options;
  options.slots = 2;
  options.vocabulary = model.spec.vocabulary;
  options.max_logit_rows = Duel::kRows;
  return options;
}

}  // namespace

DuelArguments ReadDuelArguments(int argc, char** argv, std::string_view fifth,
                                std::uint32_t tokens) {
  if (argc < 2) {
    std::cerr << "Usage: " << argv[0] << " MODEL_FOLDER [dtype] [threads] [tokens] [" << fifth
              << "]\n";
    std::exit(2);
  }
  const auto number = [&](int index, std::string_view name, std::uint32_t otherwise) {
    return argc > index ? bench::NumberArgument<std::uint32_t>(name, argv[index]) : otherwise;
  };
  DuelArguments arguments;
  arguments.folder = argv[1];
  if (argc > 2) arguments.dtype = ParseDType(argv[2]).value_or(arguments.dtype);
  arguments.threads = number(3, "threads", arguments.threads);
  arguments.tokens = number(4, "tokens", tokens);
  arguments.fifth = number(5, fifth, arguments.fifth);
  return arguments;
}

boost::json::object DuelReport(const DuelArguments& arguments, const Model& model,
                               std::string_view fifth) {
  return {{"model", arguments.folder},
          {"parameters", model.parameters},
          {"dtype", std::string(DTypeName(model.dtype))},
          {"threads", arguments.threads},
          {fifth, arguments.fifth},
          {"tokens", arguments.tokens}};
}

Duel::Duel(const Model& model, Backend& backend, std::uint32_t room, std::uint32_t candidates)
    : executor_(Settings(model), backend, local_) {
  const std::uint32_t length = kPrompt + room;
  Must(backend.Prepare({kPrompt, length, kRows, candidates}, &local_));
  blocks_ = (length + kBlock - 1) / kBlock;
  Must(backend.AllocateCache(2 * blocks_));
}

Duel::Step Duel::Begin(std::uint32_t side, const SamplingParams& sampling,
                       std::uint32_t max_new_tokens) {
  StepPlan plan;
  SequenceStart start;
  start.slot = SlotId(side);
  start.sequence = SequenceId(side + 1);
  for (std::uint32_t i = 0; i < kPrompt; ++i) {
    start.prompt.push_back(static_cast<TokenId>(20 + i * 13 % 200));
  }
  start.prompt_length = kPrompt;
  start.max_new_tokens = max_new_tokens;
  start.sampling = sampling;
  Segment prompt;
  prompt.kind = Segment::Kind::kPrompt;
  prompt.slot = start.slot;
  prompt.count = kPrompt;
  prompt.logits = Segment::Logits::kLast;
  for (std::uint32_t i = 0; i < blocks_; ++i) {
    BlockOp op;
    op.slot = start.slot;
    op.dst = BlockId(side * blocks_ + i);
    plan.block_ops.push_back(op);
  }
  plan.starts = {std::move(start)};
  plan.segments = {prompt};
  return Execute(plan);
}

Duel::Step Duel::Decode(std::uint32_t side, std::uint32_t rows) {
  StepPlan plan;
  Segment decode;
  decode.slot = SlotId(side);
  decode.max_rows = rows;
  plan.segments = {decode};
  return Execute(plan);
}

Duel::Step Duel::Execute(const StepPlan& plan) {
  const auto begin = std::chrono::steady_clock::now();
  const StepResult result = Must(executor_.Execute(plan));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  Step step{.seconds = taken.count(), .tokens = {}};
  for (const SampledToken& token : result.sequences.front().tokens) {
    step.tokens.push_back(token.token);
  }
  return step;
}

}  // namespace penstock::shard
