#include "shard/backend/cpu/stages.h"

#include <cstddef>
#include <string>
#include <variant>

namespace penstock::shard::cpu {
namespace {

// Fuses the operations of a list into stages.
class StageMaker {
 public:
  StageMaker(const std::vector<Op>& ops, const WeightStore& weights)
      : ops_(ops), weights_(weights) {}

  // The stage that begins with ops[first].
  Stage Make(std::size_t first) const {
    return std::visit([this, first](const auto& op) { return StageOf(op, first); }, ops_[first]);
  }

  // How many of `ops` from `first` on make one stage. 0 if there is no such stage.
  static std::size_t Length(const std::vector<Op>& ops, std::size_t first) {
    if (const auto* norm = std::get_if<NormOp>(&ops[first])) {
      const auto* select = Next<SelectRowsOp>(ops, first);
      return select != nullptr && select->in == norm->out ? 2 : 1;
    }
    if (const auto* linear = std::get_if<LinearOp>(&ops[first])) {
      const auto* activation = Next<ActivationOp>(ops, first);
      if (!linear->gated) return activation != nullptr && activation->in == linear->out ? 2 : 1;
      const auto* gate = Next<GatedActivationOp>(ops, first);
      return gate != nullptr && gate->in == linear->out ? 2 : 0;
    }
    if (const auto* norm = std::get_if<HeadNormOp>(&ops[first])) {
      const auto* rope = Next<RopeKvWriteOp>(ops, first);
      return rope != nullptr && rope->qkv == norm->qkv ? 2 : 0;
    }
    return Is<EmbedOp, PositionsOp, RopeKvWriteOp, AttentionOp, ExpertsOp, GateRowsOp, AllReduceOp,
              GroupNormOp, MultiplyOp, ScaleOp, LatentWriteOp, HeadLinearOp, GateOp, DeltaNetOp,
              SquaresOp, WidthNormOp, ClampOp, XieluOp, ShortConvOp>(ops[first])
               ? 1
               : 0;
  }

 private:
  template <class... Kinds>
  static bool Is(const Op& op) {
    return (std::holds_alternative<Kinds>(op) || ...);
  }
  // The operation after ops[first] if it is of this kind, else null.
  template <class Kind>
  static const Kind* Next(const std::vector<Op>& ops, std::size_t first) {
    return first + 1 < ops.size() ? std::get_if<Kind>(&ops[first + 1]) : nullptr;
  }

  Stage StageOf(const EmbedOp& op, std::size_t) const {
    return {.kind = StageKind::kEmbed, .out = op.out, .table = op.table, .table_scale = op.scale};
  }
  Stage StageOf(const PositionsOp& op, std::size_t) const {
    return {.kind = StageKind::kPositions,
            .out = op.out,
            .table = op.table,
            .table_offset = op.offset,
            .table_parts = op.parts};
  }
  Stage StageOf(const NormOp& op, std::size_t first) const {
    const auto* select = Next<SelectRowsOp>(ops_, first);
    return {.kind = select == nullptr ? StageKind::kNorm : StageKind::kSelectNorm,
            .in = op.in,
            .out = select == nullptr ? op.out : select->out,
            .add = op.add,
            .add_scale = op.add_scale,
            .norm_kind = op.kind,
            .norm_weight = weights_.Vector(op.weight),
            .norm_bias = weights_.Vector(op.bias),
            .eps = op.eps};
  }
  Stage StageOf(const LinearOp& op, std::size_t first) const {
    Stage stage{.kind = StageKind::kLinear,
                .in = op.in,
                .out = op.out,
                .epilogue = op.accumulate ? Epilogue::kAdd : Epilogue::kStore,
                .weight = op.weight,
                .matrix = &weights_.Matrix(op.weight),
                .bias = weights_.Vector(op.bias)};
    if (Length(ops_, first) == 1) return stage;
    if (const auto* activation = Next<ActivationOp>(ops_, first)) {
      stage.epilogue = Epilogue::kActivate;
      stage.activation = activation->activation;
      stage.out = activation->out;
    } else {
      const auto* gate = Next<GatedActivationOp>(ops_, first);
      stage.epilogue = Epilogue::kGate;
      stage.activation = gate->activation;
      stage.out = gate->out;
    }
    return stage;
  }
  Stage StageOf(const HeadNormOp& op, std::size_t first) const {
    Stage stage = StageOf(*Next<RopeKvWriteOp>(ops_, first), first + 1);
    stage.query_weight = weights_.Vector(op.query_weight);
    stage.key_weight = weights_.Vector(op.key_weight);
    stage.query_bias = weights_.Vector(op.query_bias);
    stage.key_bias = weights_.Vector(op.key_bias);
    stage.head_norm = &op;
    return stage;
  }
  Stage StageOf(const RopeKvWriteOp& op, std::size_t) const {
    return {.kind = StageKind::kHeads, .in = op.qkv, .heads = &op};
  }
  Stage StageOf(const AttentionOp& op, std::size_t) const {
    return {.kind = StageKind::kAttention,
            .in = op.qkv,
            .out = op.out,
            .attention = &op,
            .sinks = weights_.Vector(op.sinks)};
  }
  Stage StageOf(const ExpertsOp& op, std::size_t) const {
    return {.kind = StageKind::kExperts, .in = op.in, .out = op.out, .experts = &op};
  }
  Stage StageOf(const GateRowsOp& op, std::size_t) const {
    return {.kind = StageKind::kGateRows, .in = op.gate, .out = op.buffer, .gate_rows = &op};
  }
  Stage StageOf(const LatentWriteOp& op, std::size_t) const {
    return {.kind = StageKind::kLatentWrite,
            .in = op.latent,
            .norm_weight = weights_.Vector(op.weight),
            .latent = &op};
  }
  Stage StageOf(const HeadLinearOp& op, std::size_t) const {
    return {.kind = StageKind::kHeadLinear, .in = op.in, .out = op.out, .head_linear = &op};
  }
  Stage StageOf(const GateOp& op, std::size_t) const {
    return {.kind = StageKind::kGate, .in = op.gate, .out = op.buffer, .gate = &op};
  }
  Stage StageOf(const DeltaNetOp& op, std::size_t) const {
    return {.kind = StageKind::kDeltaNet, .in = op.in, .out = op.out, .delta = &op};
  }
  Stage StageOf(const ShortConvOp& op, std::size_t) const {
    return {.kind = StageKind::kShortConv, .in = op.in, .out = op.out, .short_conv = &op};
  }
  Stage StageOf(const AllReduceOp& op, std::size_t) const {
    return {.kind = StageKind::kAllReduce, .in = op.buffer};
  }
  Stage StageOf(const GroupNormOp& op, std::size_t) const {
    return {.kind = StageKind::kGroupNorm,
            .in = op.in,
            .out = op.out,
            .norm_weight = weights_.Vector(op.weight),
            .groups = &op};
  }
  Stage StageOf(const MultiplyOp& op, std::size_t) const {
    return {.kind = StageKind::kMultiply, .in = op.by, .out = op.buffer, .multiply = &op};
  }
  Stage StageOf(const ScaleOp& op, std::size_t) const {
    return {.kind = StageKind::kScale, .out = op.buffer, .norm_weight = weights_.Vector(op.weight)};
  }
  Stage StageOf(const SquaresOp& op, std::size_t) const {
    return {.kind = StageKind::kSquares, .in = op.qkv, .out = op.out, .squares = &op};
  }
  Stage StageOf(const WidthNormOp& op, std::size_t) const {
    return {.kind = StageKind::kWidthNorm,
            .in = op.squares,
            .out = op.qkv,
            .query_weight = weights_.Vector(op.query_weight),
            .key_weight = weights_.Vector(op.key_weight),
            .width_norm = &op};
  }
  Stage StageOf(const ClampOp& op, std::size_t) const {
    return {.kind = StageKind::kClamp, .out = op.buffer, .clamp = &op};
  }
  Stage StageOf(const XieluOp& op, std::size_t) const {
    return {.kind = StageKind::kXielu,
            .in = op.in,
            .out = op.out,
            .xielu = &op,
            .positive = weights_.Vector(op.positive),
            .negative = weights_.Vector(op.negative)};
  }
  // Never the first of a stage (Length).
  Stage StageOf(const GatedActivationOp&, std::size_t) const { return {}; }
  Stage StageOf(const ActivationOp&, std::size_t) const { return {}; }
  Stage StageOf(const SelectRowsOp&, std::size_t) const { return {}; }
  Stage StageOf(const ScaleLogitsOp&, std::size_t) const { return {}; }
  Stage StageOf(const AllGatherOp&, std::size_t) const { return {}; }

  const std::vector<Op>& ops_;
  const WeightStore& weights_;
};

// A GEMM whose result is only added to the residual stream adds it there itself.
void FuseResiduals(std::vector<Stage>& stages) {
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    Stage& linear = stages[i];
    Stage& norm = stages[i + 1];
    const bool norms = norm.kind == StageKind::kNorm || norm.kind == StageKind::kSelectNorm;
    const bool plain = linear.kind == StageKind::kLinear && linear.epilogue == Epilogue::kStore;
    if (!norms || !plain || norm.add != linear.out || norm.add == Buffer::kNone) continue;
    if (norm.add_scale != 1.0f) continue;
    linear.epilogue = Epilogue::kAdd;
    linear.out = norm.in;
    norm.add = Buffer::kNone;
  }
}

// Whether a stage from `first` on reads `buffer` before another stage writes it.
bool IsReadFrom(const std::vector<Stage>& stages, std::size_t first, Buffer buffer) {
  for (std::size_t i = first; i < stages.size(); ++i) {
    if (stages[i].in == buffer) return true;
    if (stages[i].out == buffer) return false;
  }
  return false;
}

void MarkPrivateNorms(std::vector<Stage>& stages) {
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    Stage& norm = stages[i];
    Stage& linear = stages[i + 1];
    if (norm.kind != StageKind::kNorm || norm.add != Buffer::kNone) continue;
    if (norm.out != Buffer::kNormed) continue;
    if (linear.kind != StageKind::kLinear || linear.in != norm.out) continue;
    if (IsReadFrom(stages, i + 2, norm.out)) continue;
    norm.private_rows = linear.private_rows = true;
  }
}

}  // namespace

absl::Status CheckOperations(const Program& program) {
  for (std::size_t i = 0; i < program.body.size();) {
    const std::size_t length = StageMaker::Length(program.body, i);
    if (length == 0) {
      return absl::UnimplementedError("the cpu backend has no kernel for the operation '" +
                                      std::string(NameOf(program.body[i])) + "' here");
    }
    i += length;
  }
  for (const Op& op : program.head) {
    if (std::holds_alternative<LinearOp>(op) || std::holds_alternative<ScaleLogitsOp>(op) ||
        std::holds_alternative<AllGatherOp>(op)) {
      continue;
    }
    return absl::UnimplementedError("the cpu backend has no kernel for the operation '" +
                                    std::string(NameOf(op)) + "' after the decoder");
  }
  return absl::OkStatus();
}

Stages BuildStages(const Program& program, const WeightStore& weights) {
  Stages stages;
  const StageMaker body(program.body, weights);
  for (std::size_t i = 0; i < program.body.size(); i += StageMaker::Length(program.body, i)) {
    stages.body.push_back(body.Make(i));
  }
  FuseResiduals(stages.body);
  MarkPrivateNorms(stages.body);
  if (!program.head.empty()) stages.head = StageMaker(program.head, weights).Make(0);
  for (const Op& op : program.head) {
    if (const auto* scale = std::get_if<ScaleLogitsOp>(&op)) stages.logits = *scale;
  }
  return stages;
}

}  // namespace penstock::shard::cpu
