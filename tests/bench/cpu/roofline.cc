#include "tests/bench/cpu/roofline.h"

#include <algorithm>
#include <cmath>

namespace penstock::shard {
namespace {

double Elements(const Model& model, WeightIndex weight) {
  return static_cast<double>(
      model.weight_plan.targets[static_cast<std::size_t>(weight)].Elements());
}

Phase Product(const Model& model, const LinearOp& op, double rows, double weight_bytes) {
  const double elements = Elements(model, op.weight);
  const WeightTarget& weights = model.weight_plan.targets[static_cast<std::size_t>(op.weight)];
  return {weights.name, elements * weight_bytes, 2.0 * elements * rows};
}

// Rows choose their experts independently, all experts with the same probability.
Phase Experts(const Model& model, const ExpertsOp& op, double rows, double weight_bytes) {
  double elements = 0;  // of all experts
  for (const Expert& expert : op.experts) {
    if (expert.gate_up == kNoWeight) continue;
    elements += Elements(model, expert.gate_up) + Elements(model, expert.down);
  }
  const double chosen = static_cast<double>(op.routing.chosen) / op.routing.experts;
  const double touched = 1.0 - std::pow(1.0 - chosen, rows);
  return {"experts", elements * touched * weight_bytes, 2.0 * elements * chosen * rows};
}

// Each state is read and written once; a token multiplies it by key, query and change.
Phase DeltaNet(const DeltaNetOp& op, const StepShape& shape) {
  const double sequences = shape.prompt ? 1.0 : shape.rows;
  const double elements =
      static_cast<double>(op.shape.heads) * op.shape.key_dim * op.shape.value_dim;
  return {"gated delta net", 2.0 * sequences * static_cast<double>(op.shape.Bytes()),
          7.0 * elements * shape.rows};
}

Phase Attention(const AttentionOp& op, const StepShape& shape, double layers) {
  const double rows = shape.rows;
  const double positions = shape.prompt ? rows : rows * shape.context;    // read
  const double pairs = shape.prompt ? rows * (rows + 1) / 2 : positions;  // of query and key
  const double width = static_cast<double>(op.heads.query_heads) * op.heads.key_dim;
  return {"attention", positions * shape.kv_bytes_per_token / layers, 4.0 * pairs * width};
}

}  // namespace

std::vector<Phase> PhasesOf(const Model& model, const StepShape& shape) {
  std::vector<Phase> phases;
  const std::vector<Op>& body = model.program.body;
  const auto layers = static_cast<double>(std::count_if(body.begin(), body.end(), [](const Op& op) {
    return std::holds_alternative<AttentionOp>(op);
  }));
  for (const Op& op : body) {
    if (const auto* linear = std::get_if<LinearOp>(&op)) {
      phases.push_back(Product(model, *linear, shape.rows, shape.weight_bytes));
    } else if (const auto* experts = std::get_if<ExpertsOp>(&op)) {
      phases.push_back(Experts(model, *experts, shape.rows, shape.weight_bytes));
    } else if (const auto* delta = std::get_if<DeltaNetOp>(&op)) {
      phases.push_back(DeltaNet(*delta, shape));
    } else if (const auto* attention = std::get_if<AttentionOp>(&op)) {
      phases.push_back(Attention(*attention, shape, layers));
    }
  }
  for (const Op& op : model.program.head) {
    const auto* linear = std::get_if<LinearOp>(&op);
    if (linear == nullptr) continue;
    phases.push_back(Product(model, *linear, shape.prompt ? 1 : shape.rows, shape.weight_bytes));
  }
  return phases;
}

double RooflineSeconds(const std::vector<Phase>& phases, double bytes_per_second,
                       double operations_per_second) {
  double seconds = 0;
  for (const Phase& phase : phases) {
    seconds += std::max(phase.bytes / bytes_per_second, phase.operations / operations_per_second);
  }
  return seconds;
}

}  // namespace penstock::shard
