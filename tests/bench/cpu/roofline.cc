#include "tests/bench/cpu/roofline.h"

#include <algorithm>

namespace penstock::shard {
namespace {

Phase Product(const Model& model, const LinearOp& op, double rows, double weight_bytes) {
  const WeightTarget& weights = model.weight_plan.targets[static_cast<std::size_t>(op.weight)];
  const double elements = static_cast<double>(weights.Elements());
  return {weights.name, elements * weight_bytes, 2.0 * elements * rows};
}

Phase Attention(const Model& model, const StepShape& shape) {
  const double rows = shape.rows;
  const double positions = shape.prompt ? rows : rows * shape.context;    // read
  const double pairs = shape.prompt ? rows * (rows + 1) / 2 : positions;  // of query and key
  const double width = static_cast<double>(model.spec.heads) * model.spec.head_dim;
  return {"attention", positions * shape.kv_bytes_per_token / model.spec.layers,
          4.0 * pairs * width};
}

}  // namespace

std::vector<Phase> PhasesOf(const Model& model, const StepShape& shape) {
  std::vector<Phase> phases;
  for (const Op& op : model.program.body) {
    if (const auto* linear = std::get_if<LinearOp>(&op)) {
      phases.push_back(Product(model, *linear, shape.rows, shape.weight_bytes));
    } else if (std::holds_alternative<AttentionOp>(op)) {
      phases.push_back(Attention(model, shape));
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
