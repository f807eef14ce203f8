#include "shard/backend/cuda/expert_runner.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "common/status.h"
#include "shard/backend/cuda/experts.h"
#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {
namespace {

template <class T>
T* As(const GpuMemory& memory) {
  return static_cast<T*>(memory.data());
}

}  // namespace

absl::StatusOr<ExpertRunner::Tables> ExpertRunner::MakeTables(const ExpertsOp& op,
                                                              const WeightAt& weight) {
  const std::size_t experts = op.experts.size();
  std::vector<const void*> pointers;
  for (const WeightIndex Expert::*part :
       {&Expert::gate_up, &Expert::down, &Expert::gate_up_bias, &Expert::down_bias}) {
    for (const Expert& expert : op.experts) pointers.push_back(weight(expert.*part));
  }
  Tables tables;
  const std::size_t bytes = pointers.size() * sizeof(void*);
  PENSTOCK_ASSIGN_OR_RETURN(tables.memory, GpuMemory::OnDevice(gpu_, bytes));
  PENSTOCK_RETURN_IF_ERROR(gpu_.Upload(tables.memory.data(), pointers.data(), bytes));
  const auto table = [&](std::size_t index) -> const void* const* {
    const auto begin = pointers.begin() + static_cast<std::ptrdiff_t>(index * experts);
    const bool any = std::any_of(begin, begin + static_cast<std::ptrdiff_t>(experts),
                                 [](const void* pointer) { return pointer != nullptr; });
    return any ? As<const void* const>(tables.memory) + index * experts : nullptr;
  };
  tables.gate_up = As<const void* const>(tables.memory);
  tables.down = tables.gate_up + experts;
  tables.gate_up_bias = table(2);
  tables.down_bias = table(3);
  tables.choice_bias = weight(op.routing.choice_bias);
  tables.expert_scale = weight(op.routing.expert_scale);
  return tables;
}

absl::Status ExpertRunner::AllocateScratch(std::uint32_t rows) {
  std::uint64_t chosen = 0, width = 0, experts = 0;
  bool weighs = false;
  for (const auto& [op, tables] : tables_) {
    chosen = std::max<std::uint64_t>(chosen, op->routing.chosen);
    width = std::max<std::uint64_t>(width, op->width);
    experts = std::max<std::uint64_t>(experts, op->routing.experts);
    weighs = weighs || op->weigh_inputs;
  }
  const std::uint64_t slots = rows * chosen;
  const std::uint64_t element = DTypeBytes(dtype_);
  const std::uint64_t hidden = program_.Width(Buffer::kHidden);
  const std::pair<GpuMemory*, std::uint64_t> sizes[] = {
      {&choices_, slots * sizeof(std::int32_t)},
      {&weights_, slots * sizeof(float)},
      {&slots_, slots * sizeof(std::int32_t)},
      {&choice_of_, slots * sizeof(std::int32_t)},
      {&first_, (experts + 1) * sizeof(std::int32_t)},
      {&weighed_, weighs ? slots * hidden * element : 0},
      {&up_, slots * 2 * width * element},
      {&middle_, slots * width * element},
      {&results_, slots * hidden * element}};
  for (const auto& [memory, bytes] : sizes) {
    *memory = GpuMemory();
    if (bytes == 0) continue;
    PENSTOCK_ASSIGN_OR_RETURN(*memory, GpuMemory::OnDevice(gpu_, bytes));
  }
  return absl::OkStatus();
}

absl::Status ExpertRunner::Prepare(std::uint32_t rows, const WeightAt& weight) {
  tables_.clear();
  for (const Op& op : program_.body) {
    const auto* experts = std::get_if<ExpertsOp>(&op);
    if (experts == nullptr) continue;
    PENSTOCK_ASSIGN_OR_RETURN(tables_[experts], MakeTables(*experts, weight));
  }
  return AllocateScratch(rows);
}

absl::Status ExpertRunner::Choose(const ExpertsOp& op, const Tables& tables, const void* scores,
                                  std::uint32_t rows) {
  const Routing& routing = op.routing;
  RoutingArgs args;
  args.scores = scores;
  args.choice_bias = tables.choice_bias;
  args.expert_scale = tables.expert_scale;
  args.choices = As<std::int32_t>(choices_);
  args.weights = As<float>(weights_);
  args.rows = rows;
  args.experts = routing.experts;
  args.chosen = routing.chosen;
  args.groups = routing.groups;
  args.kept_groups = routing.kept_groups;
  args.group_best = routing.group_best;
  args.sigmoid = routing.kind == Routing::Kind::kSigmoid;
  args.renormalized = routing.renormalized;
  args.scale = routing.scale;
  args.score_scale = routing.score_scale;
  PENSTOCK_RETURN_IF_ERROR(ChooseExperts(args, dtype_, gpu_.stream()));
  return SortChoices(
      {As<std::int32_t>(choices_), As<std::int32_t>(slots_), As<std::int32_t>(choice_of_),
       As<std::int32_t>(first_), rows * routing.chosen, routing.experts},
      gpu_.stream());
}

absl::Status ExpertRunner::Gate(const ExpertsOp& op, std::uint32_t slots) {
  if (op.bounded_gate.IsSet()) {
    return ActivateBoundedGate(
        {up_.data(), middle_.data(), slots, op.width, op.bounded_gate.alpha, op.bounded_gate.limit},
        dtype_, gpu_.stream());
  }
  return ActivateGate({up_.data(), middle_.data(), slots, op.width, op.activation}, dtype_,
                      gpu_.stream());
}

absl::Status ExpertRunner::Products(const ExpertsOp& op, const Tables& tables, const void* in,
                                    std::uint32_t slots) {
  const std::uint32_t hidden = program_.Width(Buffer::kHidden);
  ExpertLinearArgs up;
  up.in = in;
  up.weights = tables.gate_up;
  up.biases = tables.gate_up_bias;
  up.out = up_.data();
  up.first = As<std::int32_t>(first_);
  up.choice_of = As<std::int32_t>(choice_of_);
  up.chosen = op.routing.chosen;
  up.experts = op.routing.experts;
  up.slots = slots;
  up.in_width = hidden;
  up.out_width = 2 * op.width;
  up.batch_invariant = batch_invariant_;
  if (op.weigh_inputs) {
    PENSTOCK_RETURN_IF_ERROR(WeighInputs(
        {in, As<float>(weights_), up.choice_of, weighed_.data(), slots, op.routing.chosen, hidden},
        dtype_, gpu_.stream()));
    up.in = weighed_.data();
    up.choice_of = nullptr;
  }
  PENSTOCK_RETURN_IF_ERROR(ExpertLinear(up, dtype_, gpu_.stream()));
  PENSTOCK_RETURN_IF_ERROR(Gate(op, slots));
  ExpertLinearArgs down = up;
  down.in = middle_.data();
  down.choice_of = nullptr;
  down.weights = tables.down;
  down.biases = tables.down_bias;
  down.out = results_.data();
  down.in_width = op.width;
  down.out_width = hidden;
  return ExpertLinear(down, dtype_, gpu_.stream());
}

absl::Status ExpertRunner::Run(const ExpertsOp& op, const Buffers& buffers, std::uint32_t rows) {
  const Tables& tables = tables_.at(&op);
  PENSTOCK_RETURN_IF_ERROR(Choose(op, tables, buffers.scores, rows));
  PENSTOCK_RETURN_IF_ERROR(Products(op, tables, buffers.in, rows * op.routing.chosen));
  ExpertSumArgs sum;
  sum.in = results_.data();
  sum.choices = As<std::int32_t>(choices_);
  sum.weights = op.weigh_inputs ? nullptr : As<float>(weights_);
  sum.slots = As<std::int32_t>(slots_);
  sum.matrices = tables.gate_up;
  sum.out = buffers.out;
  sum.rows = rows;
  sum.chosen = op.routing.chosen;
  sum.width = program_.Width(Buffer::kHidden);
  sum.accumulate = op.accumulate;
  return SumExperts(sum, dtype_, gpu_.stream());
}

std::uint64_t ExpertRunner::MemoryBytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [op, tables] : tables_) bytes += tables.memory.bytes();
  for (const GpuMemory* memory : {&choices_, &weights_, &slots_, &choice_of_, &first_, &weighed_,
                                  &up_, &middle_, &results_}) {
    bytes += memory->bytes();
  }
  return bytes;
}

}  // namespace penstock::shard::cuda
