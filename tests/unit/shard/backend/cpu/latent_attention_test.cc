// Attention over a cache of latents, of every instruction set that this processor has, on cells of
// every type: right within what the type allows, and the same bits for a row whatever it shares a
// tile with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::uint32_t kBlockSize = 8;

struct Shape {
  std::size_t group;
  std::uint32_t latent, rope;
  std::size_t positions;
  std::uint32_t KeyDim() const { return latent + rope; }
};

constexpr Shape kShapes[] = {
    {1, 20, 8, 300}, {8, 512, 64, 40}, {3, 33, 2, 515}, {4, 64, 16, 257}, {5, 7, 2, 1}};

struct Case {
  Isa isa;
  KvType cells;
  std::string Name() const {
    return std::string(IsaName(isa)) + ", latents in " + std::string(KvTypeName(cells));
  }
  // The tolerance of a mean of values around one.
  double Tolerance() const {
    if (cells == KvType::kFloat32) return 2e-5;
    return cells == KvType::kBFloat16 ? 0.02 : 0.04;
  }
};

std::vector<Case> AllCases() {
  std::vector<Case> all;
  const auto best = ChooseIsa();
  EXPECT_TRUE(best.ok()) << best.status();
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (!best.ok() || isa > *best) continue;
    for (KvType cells : {KvType::kFloat32, KvType::kBFloat16, KvType::kInt8}) {
      all.push_back({isa, cells});
    }
  }
  return all;
}

// One sequence, and queries for each of its positions.
class Problem {
 public:
  Problem(const Case& kind, const Shape& shape)
      : shape_(shape),
        kernels_(*FindKernels(kind.isa, DType::kBFloat16)),
        cells_(LatentsOf(kernels_, kind.cells)) {
    latents_ = Normal(shape.positions * shape.KeyDim(), 1);
    queries_ = Normal(shape.positions * shape.group * shape.KeyDim(), 2);
    const CacheShape cache{1, shape.KeyDim(), shape.latent, true};
    PagedLayout layout{{cache, cache}, kBlockSize, DType::kBFloat16};
    layout.kv_type = kind.cells;
    const std::uint32_t blocks = layout.BlocksFor(static_cast<std::uint32_t>(shape.positions));
    EXPECT_TRUE(cache_.Allocate(layout, 2 * blocks + 1, 0, pool_).ok());
    // Values of positions that were not written must not matter.
    std::fill_n(cache_.Head(0, 0).base, layout.Bytes(2 * blocks + 1), std::byte(0xff));
    for (std::uint32_t i = 0; i < blocks; ++i) blocks_.push_back(2 * (blocks - i) - 1);
    for (std::size_t p = 0; p < shape.positions; ++p) {
      cells_.write_kv(Head(), blocks_[p / kBlockSize], p % kBlockSize,
                      &latents_[p * shape.KeyDim()], nullptr, p + 1 == shape.positions);
    }
  }

  // Rows of `tokens` positions from `position` on, computed together: [token, group, latent]. If
  // `candidate`, the token has a latent of its own.
  std::vector<float> Attend(std::size_t position, std::size_t tokens, bool candidate = false) {
    const std::size_t rows = tokens * shape_.group, dim = shape_.KeyDim();
    AttentionTile tile;
    tile.cache = Head();
    tile.blocks = blocks_.data();
    tile.queries = &queries_[position * shape_.group * dim];
    tile.query_stride = shape_.group * dim;
    tile.tokens = tokens;
    tile.group = shape_.group;
    tile.position = position;
    tile.scale = Scale();
    const CachePlace own = {blocks_[position / kBlockSize],
                            static_cast<std::uint32_t>(position % kBlockSize)};
    if (candidate) tile.own = &own;
    const std::size_t stride = (dim + 31) / 32 * 32;
    std::vector<float> queries(rows * stride), probabilities(rows * kScoreStride),
        scores(rows * kScoreStride), latents(kLatentPositions * stride);
    AttentionScratch scratch{queries.data(), scores.data(), probabilities.data(), latents.data(),
                             stride};
    State total(rows, stride), part(rows, stride);
    std::fill_n(total.state.maximum, rows, -std::numeric_limits<float>::infinity());
    cells_.load_queries(tile, scratch);
    for (std::size_t p = 0; p * kPartition < position + tokens; ++p) {
      cells_.attend(tile, p, scratch, part.state);
      kernels_.merge(rows, shape_.latent, part.state, total.state);
    }
    std::vector<float> out(rows * shape_.latent);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t d = 0; d < shape_.latent; ++d) {
        out[row * shape_.latent + d] = total.state.values[row * stride + d] / total.state.sum[row];
      }
    }
    return out;
  }

  // One row, plainly.
  std::vector<double> Plain(std::size_t position, std::size_t head) const {
    const std::size_t dim = shape_.KeyDim();
    const float* query = &queries_[(position * shape_.group + head) * dim];
    std::vector<double> out(shape_.latent, 0.0);
    double sum = 0;
    for (std::size_t p = 0; p <= position; ++p) {
      double score = 0;
      for (std::size_t d = 0; d < dim; ++d) score += query[d] * latents_[p * dim + d];
      const double weight = std::exp(score * Scale());
      sum += weight;
      for (std::size_t d = 0; d < shape_.latent; ++d) out[d] += weight * latents_[p * dim + d];
    }
    for (double& value : out) value /= sum;
    return out;
  }

 private:
  struct State {
    State(std::size_t rows, std::size_t stride) : floats(rows * (2 + stride)) {
      state = {floats.data(), floats.data() + rows, floats.data() + 2 * rows, stride};
    }
    std::vector<float> floats;
    AttentionState state;
  };

  static std::vector<float> Normal(std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> all(count);
    for (float& one : all) one = normal(random);
    return all;
  }
  HeadCache Head() const { return cache_.Head(1, 0); }
  float Scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.KeyDim())); }

  const Shape shape_;
  const Kernels& kernels_;
  const CellKernels& cells_;
  WorkerPool pool_{1};
  KvCache cache_;
  std::vector<std::uint32_t> blocks_;
  std::vector<float> latents_, queries_;
};

TEST(LatentAttention, AgreesWithPlainAttention) {
  for (const Case& kind : AllCases()) {
    for (const Shape& shape : kShapes) {
      Problem problem(kind, shape);
      const std::size_t position = shape.positions - 1;
      const std::vector<float> out = problem.Attend(position, 1);
      for (std::size_t head = 0; head < shape.group; ++head) {
        const std::vector<double> plain = problem.Plain(position, head);
        for (std::size_t d = 0; d < shape.latent; ++d) {
          ASSERT_NEAR(out[head * shape.latent + d], plain[d], kind.Tolerance())
              << kind.Name() << ", group " << shape.group << ", latent " << shape.latent
              << ", head " << head << ", dimension " << d;
        }
      }
    }
  }
}

TEST(LatentAttention, ARowHasTheSameBitsInEveryTile) {
  for (const Case& kind : AllCases()) {
    for (const Shape& shape : kShapes) {
      Problem problem(kind, shape);
      const std::size_t tokens = std::min<std::size_t>(shape.positions, 24 / shape.group + 1);
      const std::size_t first = shape.positions - tokens;
      const std::vector<float> together = problem.Attend(first, tokens);
      for (std::size_t i = 0; i < tokens; ++i) {
        const std::vector<float> alone = problem.Attend(first + i, 1);
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(),
                               together.begin() + static_cast<std::ptrdiff_t>(i * alone.size())))
            << kind.Name() << ", group " << shape.group << ", latent " << shape.latent << ", token "
            << i << " of " << tokens;
      }
    }
  }
}

// Includes the first position of a partition, which has only its own cell in that partition.
TEST(LatentAttention, ACandidateHasTheSameBits) {
  for (const Case& kind : AllCases()) {
    for (std::size_t positions : {1, 2, 40, 256, 257, 258, 513}) {
      Problem problem(kind, {4, 20, 8, positions});
      ASSERT_EQ(problem.Attend(positions - 1, 1, true), problem.Attend(positions - 1, 1))
          << kind.Name() << ", " << positions << " positions";
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
