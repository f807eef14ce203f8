#include "shard/backend/cpu/row_stages.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace penstock::shard::cpu {
namespace {

// As PositionsOp has them, rounded where transformers rounds.
void Sinusoids(std::uint32_t position, std::size_t columns, float* row) {
  const std::size_t half = columns / 2;
  const float step = -std::log(10000.0f) / static_cast<float>(half - 1);
  for (std::size_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * std::exp(static_cast<float>(i) * step);
    row[i] = std::sin(angle);
    row[half + i] = std::cos(angle);
  }
}

}  // namespace

void RunEmbed(const Stage& stage, const Program& program, const WeightStore& weights,
              const StepBuffers& buffers, std::span<const TokenId> tokens, const RowRange& rows) {
  const RankShare& part = program.part;
  const BufferView& out = buffers.View(stage.out);
  const std::size_t width = program.Width(stage.out);
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    const std::int64_t local = std::int64_t{tokens[row]} - part.first_vocabulary;
    if (local >= 0 && local < part.vocabulary) {
      float* const to = out.Floats(row);
      weights.EmbeddingRow(stage.table, static_cast<std::size_t>(local), to);
      if (stage.table_scale == 1.0f) continue;
      for (std::size_t i = 0; i < width; ++i) to[i] *= stage.table_scale;
    } else {
      std::memset(out.Row(row), 0, width * sizeof(float));
    }
  }
}

void RunPositions(const Stage& stage, const WeightStore& weights, const StepBuffers& buffers,
                  const RowPlaces& places, std::size_t columns, float* scratch,
                  const RowRange& rows) {
  const BufferView& out = buffers.View(stage.out);
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    const RowPlace& place = places.Row(row);
    const std::uint32_t entry = stage.table_parts > 0 ? std::min(place.part, stage.table_parts - 1)
                                                      : place.position + stage.table_offset;
    if (stage.table == kNoWeight) {
      Sinusoids(entry, columns, scratch);
    } else {
      weights.EmbeddingRow(stage.table, entry, scratch);
    }
    float* const to = out.Floats(row);
    for (std::size_t i = 0; i < columns; ++i) to[i] += scratch[i];
  }
}

void RunGroupNorm(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                  std::size_t columns, const RowRange& rows) {
  const GroupNormOp& op = *stage.groups;
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    float* const in = buffers.View(stage.in).Floats(row);
    float* const out = buffers.View(stage.out).Floats(row);
    for (std::size_t group = 0; group < columns; group += op.size) {
      kernels.head_norm({.input = in + group,
                         .weight = stage.norm_weight,
                         .size = op.size,
                         .eps = op.eps,
                         .out = in + group});
    }
    for (std::size_t i = 0; i < columns; ++i) out[i] = (in[i] + out[i]) * op.scale;
  }
}

void RunMultiply(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                 const RowRange& rows) {
  const MultiplyOp& op = *stage.multiply;
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    kernels.multiply_activations(buffers.View(stage.out).Row(row),
                                 buffers.View(stage.in).Floats(row) + op.first, op.width);
  }
}

void RunSquares(const SquaresOp& op, const Kernels& kernels, const StepBuffers& buffers,
                const RowRange& rows) {
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    const float* const queries = buffers.View(op.qkv).Floats(row);
    float* const out = buffers.View(op.out).Floats(row);
    out[0] = kernels.sum_of_squares(queries, op.heads.QueryWidth());
    out[1] = kernels.sum_of_squares(queries + op.heads.QueryWidth(), op.heads.KeyWidth());
  }
}

void RunWidthNorm(const Stage& stage, const StepBuffers& buffers, const RowRange& rows) {
  const WidthNormOp& op = *stage.width_norm;
  const auto scale = [&op](float* x, std::size_t width, float squares, std::uint32_t elements,
                           const float* weight) {
    const float factor = 1.0f / std::sqrt(squares / static_cast<float>(elements) + op.eps);
    for (std::size_t i = 0; i < width; ++i) x[i] = x[i] * factor * weight[i];
  };
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    float* const queries = buffers.View(op.qkv).Floats(row);
    const float* const squares = buffers.View(op.squares).Floats(row);
    scale(queries, op.heads.QueryWidth(), squares[0], op.query_elements, stage.query_weight);
    scale(queries + op.heads.QueryWidth(), op.heads.KeyWidth(), squares[1], op.key_elements,
          stage.key_weight);
  }
}

void RunClamp(const ClampOp& op, const StepBuffers& buffers, const RowRange& rows) {
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    float* const x = buffers.View(op.buffer).Floats(row);
    for (std::size_t i = 0; i < op.width; ++i) x[i] = std::clamp(x[i], -op.limit, op.limit);
  }
}

void RunXielu(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
              const RowRange& rows) {
  const XieluOp& op = *stage.xielu;
  const float up = std::log1p(std::exp(*stage.positive));
  const float down = XieluOp::kBeta + std::log1p(std::exp(*stage.negative));
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    float* const x = buffers.View(stage.in).Floats(row);
    for (std::size_t i = 0; i < op.width; ++i) {
      const float bent = x[i] > 0.0f ? up * x[i] * x[i]
                                     : down * (std::expm1(std::min(x[i], XieluOp::kLeast)) - x[i]);
      x[i] = bent + XieluOp::kBeta * x[i];
    }
    kernels.copy({.input = x, .size = op.width, .out = buffers.View(stage.out).Row(row)});
  }
}

void RunScale(const Stage& stage, const StepBuffers& buffers, std::size_t columns,
              const RowRange& rows) {
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    float* const x = buffers.View(stage.out).Floats(row);
    for (std::size_t i = 0; i < columns; ++i) x[i] *= *stage.norm_weight;
  }
}

}  // namespace penstock::shard::cpu
