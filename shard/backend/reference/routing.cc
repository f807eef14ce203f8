#include "shard/backend/reference/routing.h"

#include <limits>
#include <tuple>

namespace penstock::shard {

Routes ChooseExperts(const at::Tensor& scores, const at::Tensor& choice_bias,
                     const Routing& routing) {
  const at::Tensor wide = scores.to(at::kFloat);
  const at::Tensor all =
      routing.kind == Routing::Kind::kSoftmax ? at::softmax(wide, -1) : at::sigmoid(wide);
  at::Tensor choice = choice_bias.defined() ? all.add(choice_bias.to(at::kFloat)) : all;
  if (routing.groups > 1) {
    const at::Tensor grouped = choice.view({choice.size(0), routing.groups, -1});
    const at::Tensor best = std::get<0>(at::topk(grouped, routing.group_best, -1)).sum(-1);
    const at::Tensor kept = std::get<1>(at::topk(best, routing.kept_groups, -1));
    const at::Tensor mask = at::zeros_like(best).scatter_(1, kept, 1.0).unsqueeze(-1);
    choice = grouped.masked_fill(mask.eq(0), -std::numeric_limits<double>::infinity())
                 .reshape(choice.sizes());
  }
  const at::Tensor chosen = std::get<1>(at::topk(choice, routing.chosen, -1));
  at::Tensor weights = at::gather(all, 1, chosen);
  if (routing.renormalized) weights = weights.div(weights.sum(-1, true).add(1e-20));
  weights = weights.mul(routing.scale);
  return {at::zeros_like(all).scatter_(1, chosen, weights)};
}

}  // namespace penstock::shard
