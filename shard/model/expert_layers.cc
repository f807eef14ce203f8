#include "shard/model/expert_layers.h"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "shard/model/expert_weights.h"

namespace penstock::shard {

class ExpertsBuilder {
 public:
  explicit ExpertsBuilder(DecoderBuilder& b) : b_(b) {}

  void Experts(const ExpertNames& names, const Routing& routing, Activation activation) {
    const ExpertStacks stacks{names.experts + ".gate_up_proj", names.experts + ".down_proj"};
    if (b_.has_(stacks.gate_up)) return Stacked(names.experts, stacks, routing, false, activation);
    const ExpertSizes sizes = SizesOf(routing);
    Add(routing, activation, false,
        [&](std::uint32_t index) { return SingleExpert(names, sizes, index); });
  }

  void Stacked(const std::string& experts, const ExpertStacks& stacks, const Routing& routing,
               bool weigh_inputs, Activation activation) {
    const ExpertSizes sizes = SizesOf(routing);
    Add(routing, activation, weigh_inputs,
        [&](std::uint32_t index) { return StackedExpert(experts, stacks, sizes, index); });
  }

  void OfRows(const ExpertRows& names, const Routing& routing, Activation activation) {
    const ExpertSizes sizes = SizesOf(routing);
    Add(routing, activation, false,
        [&](std::uint32_t index) { return ExpertOfRows(names, sizes, index); });
  }

  void Interleaved(const std::string& experts, const Routing& routing, const BoundedGate& gate) {
    const ExpertSizes sizes = SizesOf(routing);
    const ExpertStacks stacks{Name(experts) + ".gate_up_proj", Name(experts) + ".down_proj", true,
                              true};
    ExpertsOp op = EmptyExperts(routing);
    op.bounded_gate = gate;
    const Range own = OwnExperts(routing);
    for (std::uint64_t i = own.first; i < own.first + own.count && !b_.refused_; ++i) {
      const auto index = static_cast<std::uint32_t>(i);
      ExpertTargets matrices = StackedExpert(Name(experts), stacks, sizes, index);
      ExpertTargets biases = InterleavedBiases(Name(experts), sizes, index);
      Expert& expert = op.experts[i];
      expert.gate_up = b_.AddTarget(std::move(matrices.gate_up));
      expert.down = b_.AddTarget(std::move(matrices.down));
      expert.gate_up_bias = b_.AddTarget(std::move(biases.gate_up));
      // It joins the sum over the ranks once.
      if (b_.part_.rank == 0 || b_.part_.whole_experts) {
        expert.down_bias = b_.AddTarget(std::move(biases.down));
      }
    }
    b_.Add(op);
  }

  void Shared(const std::string& gate, const std::string& up, const std::string& down,
              const std::string& row_gate) {
    const std::uint64_t all = b_.spec_.shared_intermediate;
    SharedOf({{gate, all, OwnShared()}, {up, all, OwnShared()}}, down, row_gate);
  }

  void FusedShared(const std::string& gate_up, const std::string& down) {
    const std::uint64_t all = b_.spec_.shared_intermediate;
    const Range mine = OwnShared();
    SharedOf({{gate_up, 2 * all, mine}, {gate_up, 2 * all, {all + mine.first, mine.count}}}, down,
             "");
  }

  std::string Name(const std::string& tensor) const { return b_.Name(tensor); }
  // A number for each expert in a tensor [1, experts].
  WeightIndex Row(const std::string& tensor, std::uint32_t experts) {
    WeightTarget target{Name(tensor), experts, 1, true, {}};
    target.parts.push_back({.tensor = Name(tensor),
                            .stored_shape = {experts},
                            .rows = {0, experts},
                            .columns = {0, 1},
                            .stack = 1});
    return b_.AddTarget(std::move(target));
  }
  // A number for each expert, or kNoWeight without a name.
  WeightIndex Vector(const std::string& tensor, std::uint32_t experts) {
    return tensor.empty() ? kNoWeight : b_.Vector(Name(tensor), experts);
  }

 private:
  // The columns of the shared expert on this rank.
  Range OwnShared() const {
    const std::uint64_t width = b_.spec_.shared_intermediate / b_.part_.world;
    return {b_.part_.rank * width, width};
  }

  void SharedOf(const std::vector<RowSlice>& gate_up, const std::string& down,
                const std::string& row_gate) {
    const Range mine = OwnShared();
    const auto width = static_cast<std::uint32_t>(mine.count);
    b_.Widen(Buffer::kSharedUp, 2 * width);
    b_.Widen(Buffer::kShared, width);
    LinearOp op = b_.RowLinear("shared_gate_up", Buffer::kSharedUp, gate_up);
    op.gated = true;
    b_.Add(op);
    b_.Add(GatedActivationOp{.in = Buffer::kSharedUp, .out = Buffer::kShared, .width = width});
    if (!row_gate.empty()) {
      b_.Widen(Buffer::kSharedGate, 1);
      b_.Add(b_.RowLinear("shared_row_gate", Buffer::kSharedGate, {{row_gate, 1, {0, 1}}}));
      b_.Add(GateRowsOp{.buffer = Buffer::kShared, .gate = Buffer::kSharedGate});
    }
    b_.ColumnLinear(down, Buffer::kShared, b_.spec_.shared_intermediate, mine);
  }

  void Add(const Routing& routing, Activation activation, bool weigh_inputs,
           const std::function<ExpertTargets(std::uint32_t index)>& targets_of) {
    ExpertsOp op = EmptyExperts(routing);
    op.activation = activation;
    op.weigh_inputs = weigh_inputs;
    const Range own = OwnExperts(routing);
    for (std::uint64_t i = own.first; i < own.first + own.count && !b_.refused_; ++i) {
      ExpertTargets targets = targets_of(static_cast<std::uint32_t>(i));
      op.experts[i].gate_up = b_.AddTarget(std::move(targets.gate_up));
      op.experts[i].down = b_.AddTarget(std::move(targets.down));
    }
    b_.Add(op);
  }

  ExpertSizes SizesOf(const Routing& routing) const {
    const std::uint64_t all = b_.spec_.expert_intermediate;
    const std::uint64_t width = b_.part_.whole_experts ? all : all / b_.part_.world;
    return {routing.experts,
            b_.spec_.hidden,
            all,
            {b_.part_.whole_experts ? 0 : b_.part_.rank * width, width}};
  }

  // The experts of which this rank has weights, whole or in part.
  Range OwnExperts(const Routing& routing) const {
    if (!b_.part_.whole_experts) return {0, routing.experts};
    const std::uint64_t count = routing.experts / b_.part_.world;
    return {b_.part_.rank * count, count};
  }

  // An operation that begins the branch or adds to it, without weights.
  ExpertsOp EmptyExperts(const Routing& routing) {
    return {.in = Buffer::kNormed,
            .scores = Buffer::kRouter,
            .out = b_.target_,
            .accumulate = std::exchange(b_.branch_begun_, true),
            .routing = routing,
            .width = static_cast<std::uint32_t>(SizesOf(routing).mine.count),
            .experts = std::vector<Expert>(routing.experts)};
  }

  DecoderBuilder& b_;
};

void AddExperts(DecoderBuilder& b, const std::string& experts, const std::string& gate,
                const std::string& up, const std::string& down, const Routing& routing,
                const std::string& choice_bias, Activation activation,
                const std::string& expert_scale) {
  ExpertsBuilder builder(b);
  Routing complete = routing;
  complete.expert_scale = builder.Vector(expert_scale, routing.experts);
  if (!choice_bias.empty()) complete.choice_bias = builder.Vector(choice_bias, routing.experts);
  builder.Experts({builder.Name(experts), gate, up, down}, complete, activation);
}

Routing WithChoiceRow(DecoderBuilder& b, Routing routing, const std::string& tensor) {
  routing.choice_bias = ExpertsBuilder(b).Row(tensor, routing.experts);
  return routing;
}

void AddStackedExperts(DecoderBuilder& b, const ExpertStacks& stacks, const Routing& routing,
                       bool weigh_inputs, Activation activation) {
  ExpertsBuilder builder(b);
  ExpertStacks named = stacks;
  named.gate_up = builder.Name(stacks.gate_up);
  named.down = builder.Name(stacks.down);
  builder.Stacked(builder.Name("experts"), named, routing, weigh_inputs, activation);
}

void AddRowStackedExperts(DecoderBuilder& b, const ExpertRows& names, const Routing& routing,
                          Activation activation) {
  ExpertsBuilder builder(b);
  builder.OfRows({builder.Name(names.gate), builder.Name(names.up), builder.Name(names.down)},
                 routing, activation);
}

void AddInterleavedExperts(DecoderBuilder& b, const std::string& experts, const Routing& routing,
                           const BoundedGate& gate) {
  ExpertsBuilder(b).Interleaved(experts, routing, gate);
}

void AddSharedExpert(DecoderBuilder& b, const std::string& gate, const std::string& up,
                     const std::string& down, const std::string& row_gate) {
  ExpertsBuilder(b).Shared(gate, up, down, row_gate);
}

void AddFusedSharedExpert(DecoderBuilder& b, const std::string& gate_up, const std::string& down) {
  ExpertsBuilder(b).FusedShared(gate_up, down);
}

}  // namespace penstock::shard
