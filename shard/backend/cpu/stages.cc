#include "shard/backend/cpu/stages.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::shard::cpu {
namespace {

std::string_view NameOf(OpKind kind) {
  switch (kind) {
    case OpKind::kEmbed:
      return "embed";
    case OpKind::kNorm:
      return "norm";
    case OpKind::kLinear:
      return "linear";
    case OpKind::kHeadNorm:
      return "head norm";
    case OpKind::kRopeKvWrite:
      return "rope and K/V write";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kGatedActivation:
      return "gated activation";
    case OpKind::kAllReduce:
      return "all-reduce";
    case OpKind::kSelectRows:
      return "select rows";
    case OpKind::kAllGather:
      return "all-gather";
  }
  return "unknown";
}

// How many operations of `ops` from `first` on make one stage; 0: there is no such stage.
std::size_t StageLength(const std::vector<Op>& ops, std::size_t first) {
  const Op& op = ops[first];
  const Op* next = first + 1 < ops.size() ? &ops[first + 1] : nullptr;
  switch (op.kind) {
    case OpKind::kEmbed:
    case OpKind::kRopeKvWrite:
    case OpKind::kAttention:
    case OpKind::kAllReduce:
      return 1;
    case OpKind::kNorm: {
      const bool selects = next != nullptr && next->kind == OpKind::kSelectRows;
      return selects && next->in == op.out ? 2 : 1;
    }
    case OpKind::kLinear: {
      const bool gates = next != nullptr && next->kind == OpKind::kGatedActivation;
      return gates && next->in == op.out ? 2 : 1;
    }
    case OpKind::kHeadNorm:
      return next != nullptr && next->kind == OpKind::kRopeKvWrite && next->in == op.in ? 2 : 0;
    case OpKind::kGatedActivation:
    case OpKind::kSelectRows:
    case OpKind::kAllGather:
      return 0;
  }
  return 0;
}

Stage MakeStage(const std::vector<Op>& ops, std::size_t first, const WeightStore& weights) {
  const Op& op = ops[first];
  const Op& last = ops[first + StageLength(ops, first) - 1];
  Stage stage;
  stage.in = op.in;
  stage.out = last.out;
  stage.add = op.add;
  stage.layer = last.layer;
  stage.window = op.window;
  switch (op.kind) {
    case OpKind::kEmbed:
      stage.kind = StageKind::kEmbed;
      stage.embedding = op.weight;
      break;
    case OpKind::kLinear:
      stage.kind = StageKind::kLinear;
      stage.matrix = &weights.Matrix(op.weight);
      stage.weight = weights.Vector(op.bias);
      stage.epilogue = stage.matrix->gated() ? Epilogue::kGate : Epilogue::kStore;
      break;
    case OpKind::kAttention:
      stage.kind = StageKind::kAttention;
      break;
    case OpKind::kAllReduce:
      stage.kind = StageKind::kAllReduce;
      break;
    case OpKind::kHeadNorm:
    case OpKind::kRopeKvWrite:
      stage.kind = StageKind::kHeads;
      stage.weight = weights.Vector(op.weight);
      stage.weight2 = weights.Vector(op.weight2);
      break;
    default:
      stage.kind = &op == &last ? StageKind::kNorm : StageKind::kSelectNorm;
      stage.weight = weights.Vector(op.weight);
  }
  return stage;
}

// A product whose result only joins the residual stream adds it there itself.
void FuseResiduals(std::vector<Stage>& stages) {
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    Stage& linear = stages[i];
    Stage& norm = stages[i + 1];
    const bool norms = norm.kind == StageKind::kNorm || norm.kind == StageKind::kSelectNorm;
    const bool plain = linear.kind == StageKind::kLinear && linear.epilogue == Epilogue::kStore;
    if (!norms || !plain || norm.add != linear.out || norm.add == Buffer::kNone) continue;
    linear.epilogue = Epilogue::kAdd;
    linear.out = norm.in;
    norm.add = Buffer::kNone;
  }
}

void MarkPrivateNorms(std::vector<Stage>& stages) {
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    Stage& norm = stages[i];
    Stage& linear = stages[i + 1];
    if (norm.kind != StageKind::kNorm || norm.add != Buffer::kNone) continue;
    if (linear.kind != StageKind::kLinear || linear.in != norm.out) continue;
    norm.private_rows = linear.private_rows = true;
  }
}

}  // namespace

absl::Status CheckOperations(const Program& program) {
  for (std::size_t i = 0; i < program.body.size();) {
    const std::size_t length = StageLength(program.body, i);
    if (length == 0) {
      return absl::UnimplementedError("the cpu backend has no kernel for the operation '" +
                                      std::string(NameOf(program.body[i].kind)) + "' here");
    }
    i += length;
  }
  for (const Op& op : program.head) {
    if (op.kind == OpKind::kLinear || op.kind == OpKind::kAllGather) continue;
    return absl::UnimplementedError("the cpu backend has no kernel for the operation '" +
                                    std::string(NameOf(op.kind)) + "' after the decoder");
  }
  return absl::OkStatus();
}

Stages BuildStages(const Program& program, const WeightStore& weights) {
  Stages stages;
  for (std::size_t i = 0; i < program.body.size(); i += StageLength(program.body, i)) {
    stages.body.push_back(MakeStage(program.body, i, weights));
  }
  FuseResiduals(stages.body);
  MarkPrivateNorms(stages.body);
  stages.head = MakeStage(program.head, 0, weights);
  return stages;
}

}  // namespace penstock::shard::cpu
