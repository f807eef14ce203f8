#include "shard/backend/reference/routing.h"

#include <limits>
#include <tuple>

namespace penstock::shard {
namespace {

constexpr double kNeverChosen = -std::numeric_limits<double>::infinity();

Routes MixExperts(const at::Tensor& scores, const Routing& routing) {
  at::Tensor left = scores;
  at::Tensor weights = at::zeros(scores.sizes(), scores.options());
  for (std::uint32_t i = 0; i < routing.chosen; ++i) {
    const auto [best, chosen] = left.max(-1, true);
    const at::Tensor far =
        best.sub(scores).div(scores.abs().maximum(best)).gt(routing.mixer_distance);
    const at::Tensor parts = at::softmax(left.masked_fill(far, kNeverChosen), -1);
    weights.scatter_(1, chosen, parts.gather(1, chosen));
    left = left.scatter(1, chosen, kNeverChosen);
  }
  return {weights};
}

}  // namespace

Routes ChooseExperts(const at::Tensor& scores, const at::Tensor& choice_bias,
                     const at::Tensor& expert_scale, const Routing& routing) {
  const at::Tensor wide = scores.to(at::kFloat).mul(routing.score_scale);
  if (routing.kind == Routing::Kind::kSparseMixer) return MixExperts(wide, routing);
  const at::Tensor all =
      routing.kind == Routing::Kind::kSoftmax ? at::softmax(wide, -1) : wide.sigmoid();
  at::Tensor choice = choice_bias.defined() ? all.add(choice_bias.to(at::kFloat)) : all;
  if (routing.groups > 1) {
    const at::Tensor grouped = choice.view({choice.size(0), routing.groups, -1});
    const at::Tensor best = std::get<0>(grouped.topk(routing.group_best, -1)).sum(-1);
    const at::Tensor kept = std::get<1>(best.topk(routing.kept_groups, -1));
    const at::Tensor mask = at::zeros(best.sizes(), best.options()).scatter_(1, kept, 1.0);
    choice = grouped.masked_fill(mask.eq(0).unsqueeze(-1), kNeverChosen).reshape(choice.sizes());
  }
  const at::Tensor chosen = std::get<1>(choice.topk(routing.chosen, -1));
  at::Tensor weights = all.gather(1, chosen);
  if (routing.renormalized) weights = weights.div(weights.sum(-1, true).add(1e-20));
  weights = weights.mul(routing.scale);
  if (expert_scale.defined()) {
    const at::Tensor scale = expert_scale.to(at::kFloat);
    weights = weights.mul(at::index_select(scale, 0, chosen.flatten()).view(chosen.sizes()));
  }
  return {at::zeros(all.sizes(), all.options()).scatter_(1, chosen, weights)};
}

}  // namespace penstock::shard
