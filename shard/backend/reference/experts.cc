#include "shard/backend/reference/experts.h"

#include "shard/backend/reference/operations.h"
#include "shard/backend/reference/routing.h"

namespace penstock::shard {
namespace {

void Gate(const ExpertsOp& op, const at::Tensor& gate, const at::Tensor& up, at::Tensor out) {
  const BoundedGate& bounded = op.bounded_gate;
  if (!bounded.IsSet()) {
    Activate(gate, op.activation, out);
    out.mul_(up);
    return;
  }
  const double limit = bounded.limit;
  const at::Tensor g = gate.clamp_max(limit);
  const at::Tensor u = up.clamp_min(-limit).clamp_max(limit);
  out.copy_(u.add(1).mul(g).mul(g.mul(bounded.alpha).sigmoid()));
}

// One expert for rows that are whole tiles.
at::Tensor RunExpert(const ExpertsOp& op, const Expert& expert, const at::Tensor& in,
                     const WeightOf& weight) {
  const std::int64_t width = op.width;
  const at::Tensor gate_up = at::empty({in.size(0), 2 * width}, in.options());
  Linear(in, weight(expert.gate_up), weight(expert.gate_up_bias), gate_up);
  const at::Tensor middle = at::empty({in.size(0), width}, in.options());
  Gate(op, gate_up.narrow(1, 0, width), gate_up.narrow(1, width, width), middle);
  const at::Tensor& down = weight(expert.down);
  at::Tensor out = at::empty({in.size(0), down.size(0)}, in.options());
  Linear(middle, down, weight(expert.down_bias), out);
  return out;
}

}  // namespace

void RunExperts(const ExpertsOp& op, const at::Tensor& in, const at::Tensor& scores,
                const WeightOf& weight, at::Tensor out) {
  const Routes routes = ChooseExperts(scores, weight(op.routing.choice_bias),
                                      weight(op.routing.expert_scale), op.routing);
  at::Tensor sum = at::zeros(in.sizes(), in.options().dtype(at::kFloat));
  for (std::size_t i = 0; i < op.experts.size(); ++i) {
    if (op.experts[i].gate_up == kNoWeight) continue;  // of another rank
    const at::Tensor weights = routes.WeightOf(static_cast<std::int64_t>(i));
    const at::Tensor rows = weights.nonzero().squeeze(1);
    const std::int64_t count = rows.size(0);
    if (count == 0) continue;
    const std::int64_t padded = (count + kRowTile - 1) / kRowTile * kRowTile;
    at::Tensor mine = at::zeros({padded, in.size(1)}, in.options());
    const at::Tensor factors = at::index_select(weights, 0, rows).unsqueeze(1);
    mine.narrow(0, 0, count).copy_(at::index_select(in, 0, rows));
    if (op.weigh_inputs) mine.narrow(0, 0, count).mul_(factors);
    const at::Tensor result =
        RunExpert(op, op.experts[i], mine, weight).narrow(0, 0, count).to(at::kFloat);
    sum.index_add_(0, rows, op.weigh_inputs ? result : result.mul(factors));
  }
  if (op.accumulate) {
    out.add_(sum);
  } else {
    out.copy_(sum);
  }
}

}  // namespace penstock::shard
