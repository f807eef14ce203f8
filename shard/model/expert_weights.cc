#include "shard/model/expert_weights.h"

namespace penstock::shard {
namespace {

ExpertTargets EmptyTargets(const std::string& experts, const ExpertSizes& sizes,
                           std::uint32_t index) {
  const std::string label = experts + "." + std::to_string(index) + ".";
  return {{label + "gate_up", 2 * sizes.mine.count, sizes.hidden, false, {}},
          {label + "down", sizes.hidden, sizes.mine.count, false, {}}};
}

WeightPart OfStack(WeightPart part, const ExpertSizes& sizes, std::uint32_t index) {
  part.stack = sizes.experts;
  part.matrix = index;
  return part;
}

// Gate rows (half 0) or up rows (half 1) of a tensor in which they alternate.
WeightPart Alternating(WeightPart part, const ExpertSizes& sizes, std::uint64_t half) {
  part.rows = {2 * sizes.mine.first + half, sizes.mine.count};
  part.row_step = 2;
  part.target_row = half * sizes.mine.count;
  return part;
}

}  // namespace

ExpertTargets SingleExpert(const ExpertNames& names, const ExpertSizes& sizes,
                           std::uint32_t index) {
  const std::string own = names.experts + "." + std::to_string(index) + ".";
  const Range all{0, sizes.hidden}, mine = sizes.mine;
  ExpertTargets targets = EmptyTargets(names.experts, sizes, index);
  targets.gate_up.parts = {
      {own + names.gate + ".weight", {sizes.width, sizes.hidden}, mine, all, 0},
      {own + names.up + ".weight", {sizes.width, sizes.hidden}, mine, all, mine.count}};
  targets.down.parts = {{own + names.down + ".weight", {sizes.hidden, sizes.width}, all, mine, 0}};
  return targets;
}

ExpertTargets StackedExpert(const std::string& experts, const ExpertStacks& stacks,
                            const ExpertSizes& sizes, std::uint32_t index) {
  const Range all{0, sizes.hidden}, mine = sizes.mine;
  ExpertTargets targets = EmptyTargets(experts, sizes, index);
  for (const std::uint64_t half : {0, 1}) {
    WeightPart part{stacks.gate_up,
                    {2 * sizes.width, sizes.hidden},
                    {half * sizes.width + mine.first, mine.count},
                    all,
                    half * mine.count,
                    stacks.transposed};
    if (stacks.alternating) part = Alternating(part, sizes, half);
    targets.gate_up.parts.push_back(OfStack(part, sizes, index));
  }
  const WeightPart down{stacks.down, {sizes.hidden, sizes.width}, all, mine, 0, stacks.transposed};
  targets.down.parts.push_back(OfStack(down, sizes, index));
  return targets;
}

ExpertTargets ExpertOfRows(const ExpertRows& names, const ExpertSizes& sizes, std::uint32_t index) {
  const Range all{0, sizes.hidden};
  const Range mine{index * sizes.width + sizes.mine.first, sizes.mine.count};
  const std::uint64_t rows = sizes.experts * sizes.width;
  ExpertTargets targets = EmptyTargets(names.gate, sizes, index);
  targets.gate_up.parts = {{names.gate, {rows, sizes.hidden}, mine, all, 0},
                           {names.up, {rows, sizes.hidden}, mine, all, mine.count}};
  targets.down.parts = {{names.down, {sizes.hidden, rows}, all, mine, 0, true}};
  return targets;
}

ExpertTargets InterleavedBiases(const std::string& experts, const ExpertSizes& sizes,
                                std::uint32_t index) {
  const std::string label = experts + "." + std::to_string(index) + ".";
  ExpertTargets targets{{label + "gate_up_bias", 2 * sizes.mine.count, 1, true, {}},
                        {label + "down_bias", sizes.hidden, 1, true, {}}};
  const WeightPart gate_up =
      OfStack({experts + ".gate_up_proj_bias", {2 * sizes.width}, {}, {0, 1}, 0}, sizes, index);
  for (const std::uint64_t half : {0, 1}) {
    targets.gate_up.parts.push_back(Alternating(gate_up, sizes, half));
  }
  targets.down.parts.push_back(OfStack(
      {experts + ".down_proj_bias", {sizes.hidden}, {0, sizes.hidden}, {0, 1}, 0}, sizes, index));
  return targets;
}

}  // namespace penstock::shard
