#include "shard/backend/cpu/experts/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace penstock::shard::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLeastSum = 1e-20f;  // as in transformers

// The indices of the `count` largest values come first, those of equal values in ascending order.
void Rank(const std::vector<float>& values, std::size_t count, std::vector<std::uint32_t>& order) {
  order.resize(values.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto before = [&values](std::uint32_t a, std::uint32_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    before);
}

void SortByExpert(std::span<Choice> choices) {
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.expert < b.expert; });
}

}  // namespace

void Router::Weigh(const float* scores, std::vector<float>& weights) const {
  weights.assign(scores, scores + routing_.experts);
  if (routing_.score_scale != 1.0f) {
    for (float& weight : weights) weight *= routing_.score_scale;
  }
  if (routing_.kind == Routing::Kind::kSigmoid) {
    for (float& weight : weights) weight = 1.0f / (1.0f + std::exp(-weight));
    return;
  }
  const float largest = *std::max_element(weights.begin(), weights.end());
  float sum = 0;
  for (float& weight : weights) sum += weight = std::exp(weight - largest);
  for (float& weight : weights) weight /= sum;
}

// Experts of groups that are not kept cannot be chosen.
void Router::DropGroups(Scratch& scratch) const {
  const std::uint32_t size = routing_.experts / routing_.groups;
  scratch.groups.clear();
  for (std::uint32_t group = 0; group < routing_.groups; ++group) {
    const auto first = scratch.values.begin() + group * size;
    std::vector<float> best(first, first + size);
    std::partial_sort(best.begin(), best.begin() + routing_.group_best, best.end(),
                      std::greater<>());
    scratch.groups.push_back(
        std::accumulate(best.begin(), best.begin() + routing_.group_best, 0.0f));
  }
  Rank(scratch.groups, routing_.kept_groups, scratch.order);
  for (std::uint32_t i = routing_.kept_groups; i < routing_.groups; ++i) {
    const auto first = scratch.values.begin() + scratch.order[i] * size;
    std::fill(first, first + size, kMinusInfinity);
  }
}

void Router::Mix(const float* scores, Scratch& scratch, std::span<Choice> out) const {
  scratch.values.assign(scores, scores + routing_.experts);
  for (Choice& choice : out) {
    const auto best = std::max_element(scratch.values.begin(), scratch.values.end());
    float sum = 0;
    for (std::uint32_t i = 0; i < routing_.experts; ++i) {
      const float distance = (*best - scores[i]) / std::max(std::abs(scores[i]), *best);
      if (!(distance > routing_.mixer_distance)) sum += std::exp(scratch.values[i] - *best);
    }
    choice = {static_cast<std::uint32_t>(best - scratch.values.begin()), 1.0f / sum};
    *best = kMinusInfinity;
  }
}

void Router::Choose(const float* scores, Scratch& scratch, std::span<Choice> out) const {
  if (routing_.kind == Routing::Kind::kSparseMixer) {
    Mix(scores, scratch, out);
    return SortByExpert(out);
  }
  Weigh(scores, scratch.weights);
  scratch.values = scratch.weights;
  if (choice_bias_ != nullptr) {
    for (std::uint32_t i = 0; i < routing_.experts; ++i) scratch.values[i] += choice_bias_[i];
  }
  if (routing_.groups > 1) DropGroups(scratch);
  Rank(scratch.values, routing_.chosen, scratch.order);
  float sum = 0;
  for (std::uint32_t i = 0; i < routing_.chosen; ++i) {
    out[i] = {scratch.order[i], scratch.weights[scratch.order[i]]};
    sum += out[i].weight;
  }
  const float scale = routing_.scale / (routing_.renormalized ? sum + kLeastSum : 1.0f);
  for (Choice& choice : out) {
    choice.weight *= scale;
    if (expert_scale_ != nullptr) choice.weight *= expert_scale_[choice.expert];
  }
  SortByExpert(out);
}

}  // namespace penstock::shard::cpu
