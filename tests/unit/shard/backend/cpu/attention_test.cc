// Attention of every instruction set that this processor has, on cells of every type: right within
// what the type allows, and the same bits for a row whatever it shares a tile with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard::cpu {
namespace {

struct Shape {
  std::size_t group, dim;
  std::uint32_t block_size;
  std::size_t positions, window;
  std::size_t value_dim = 0;  // 0 = dim
  std::size_t chunk = 0;      // 0 = all
  float slope = 0.0f;         // of the linear biases of the first head; 0 = none
  std::size_t Values() const { return value_dim == 0 ? dim : value_dim; }
  std::size_t FirstVisible(std::size_t position) const {
    const std::size_t of_chunk = chunk > 0 ? position / chunk * chunk : 0;
    const bool all = window == 0 || position < window;
    return std::max(of_chunk, all ? 0 : position + 1 - window);
  }
};

constexpr Shape kShapes[] = {{1, 64, 16, 300, 0},
                             {8, 64, 16, 700, 0},
                             {3, 48, 16, 515, 100},
                             {7, 128, 32, 260, 0},
                             {4, 80, 8, 40, 0},
                             {6, 20, 2, 33, 0},
                             {12, 64, 16, 257, 17},
                             {25, 16, 48, 300, 0},
                             {5, 96, 16, 256, 0},
                             {2, 96, 16, 300, 0, 40},
                             // Chunks begin within a tile, and after the start of a partition.
                             {4, 64, 16, 300, 0, 0, 148},
                             {2, 64, 16, 260, 0, 0, 129},
                             {3, 48, 16, 515, 0, 0, 0, 0.1f}};

struct Case {
  Isa isa;
  DType model;
  KvType cells;
  std::string Name() const {
    return std::string(IsaName(isa)) + " " + std::string(DTypeName(model)) + ", K/V " +
           std::string(KvTypeName(cells));
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
    for (DType model : {DType::kFloat32, DType::kBFloat16}) {
      for (KvType cells : {KvType::kFloat32, KvType::kBFloat16, KvType::kInt8}) {
        all.push_back({isa, model, cells});
      }
    }
  }
  return all;
}

// One sequence and one head: queries for the last positions over all of them.
class Problem {
 public:
  Problem(const Case& kind, const Shape& shape)
      : shape_(shape),
        kernels_(*FindKernels(kind.isa, kind.model)),
        cells_(CellsOf(kernels_, kind.cells)) {
    const std::size_t count = shape.positions * shape.dim;
    keys_ = Normal(count, 1);
    values_ = Normal(shape.positions * shape.Values(), 2);
    queries_ = Normal(count * shape.group, 3);
    const CacheShape heads{2, static_cast<std::uint32_t>(shape.dim),
                           static_cast<std::uint32_t>(shape.Values())};
    PagedLayout layout{{heads, heads}, shape.block_size, kind.model};
    layout.kv_type = kind.cells;
    const std::uint32_t blocks = layout.BlocksFor(static_cast<std::uint32_t>(shape.positions));
    EXPECT_TRUE(cache_.Allocate(layout, 2 * blocks + 1, 0, pool_).ok());
    // Values of positions that were not written must not matter.
    std::fill_n(cache_.Head(0, 0).base, layout.Bytes(2 * blocks + 1), std::byte(0xff));
    for (std::uint32_t i = 0; i < blocks; ++i) blocks_.push_back(2 * (blocks - i) - 1);
    for (std::size_t p = 0; p < shape.positions; ++p) {
      cells_.write_kv(Head(), blocks_[p / shape.block_size], p % shape.block_size,
                      &keys_[p * shape.dim], &values_[p * shape.Values()],
                      p + 1 == shape.positions);
    }
  }

  // Rows of `tokens` positions from `position` on, computed together: [token, group, dim]. It
  // prefetches `prefetch` meanwhile. If `candidates`, each token has its own K and V.
  std::vector<float> Attend(std::size_t position, std::size_t tokens,
                            std::span<const BlockRun> prefetch = {}, bool candidates = false) {
    const std::size_t rows = tokens * shape_.group;
    AttentionTile tile;
    tile.cache = Head();
    tile.blocks = blocks_.data();
    tile.queries = &queries_[position * shape_.group * shape_.dim];
    tile.query_stride = shape_.group * shape_.dim;
    tile.tokens = tokens;
    tile.group = shape_.group;
    tile.position = position;
    tile.window = shape_.window;
    tile.chunk = shape_.chunk;
    tile.scale = Scale();
    std::vector<float> slopes;
    for (std::size_t i = 0; i < shape_.group; ++i) slopes.push_back(Slope(i));
    if (shape_.slope != 0.0f) tile.slopes = slopes.data();
    tile.prefetch = prefetch;
    const CachePlace own = {blocks_[position / shape_.block_size],
                            static_cast<std::uint32_t>(position % shape_.block_size)};
    if (candidates) tile.own = &own;
    std::vector<float> queries(rows * kQueryStride), probabilities(rows * kScoreStride),
        scores(rows * kScoreStride);
    AttentionScratch scratch{queries.data(), scores.data(), probabilities.data()};
    Memory total(rows), part(rows);
    std::fill_n(total.state.maximum, rows, -std::numeric_limits<float>::infinity());
    cells_.load_queries(tile, scratch);
    const std::size_t first = shape_.FirstVisible(position) / kPartition;
    for (std::size_t p = first; p * kPartition < position + tokens; ++p) {
      cells_.attend(tile, p, scratch, part.state);
      kernels_.merge(rows, shape_.Values(), part.state, total.state);
    }
    std::vector<float> out(rows * shape_.Values());
    // As float32 whatever the activations of the model are.
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t d = 0; d < shape_.Values(); ++d) {
        out[row * shape_.Values() + d] =
            total.state.values[row * total.state.value_stride + d] / total.state.sum[row];
      }
    }
    return out;
  }

  BlockRun Blocks() const { return {Head().base, blocks_.data(), blocks_.size()}; }

  // One row, plainly.
  std::vector<double> Plain(std::size_t position, std::size_t head) const {
    const float* query = &queries_[(position * shape_.group + head) * shape_.dim];
    const std::size_t first = shape_.FirstVisible(position);
    std::vector<double> out(shape_.Values(), 0.0);
    double sum = 0;
    for (std::size_t p = first; p <= position; ++p) {
      double score = 0;
      for (std::size_t d = 0; d < shape_.dim; ++d) score += query[d] * keys_[p * shape_.dim + d];
      const double bias = Slope(head) * (static_cast<double>(p) - static_cast<double>(position));
      const double weight = std::exp(score * Scale() + bias);
      sum += weight;
      for (std::size_t d = 0; d < shape_.Values(); ++d)
        out[d] += weight * values_[p * shape_.Values() + d];
    }
    for (double& value : out) value /= sum;
    return out;
  }

 private:
  struct Memory {
    explicit Memory(std::size_t rows) : floats(rows * (2 + kStride)) {
      state = {floats.data(), floats.data() + rows, floats.data() + 2 * rows, kStride};
    }
    static constexpr std::size_t kStride = 144;
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
  HeadCache Head() const { return cache_.Head(1, 1); }
  float Scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.dim)); }
  float Slope(std::size_t head) const { return shape_.slope / static_cast<float>(head + 1); }

  const Shape shape_;
  const Kernels& kernels_;
  const CellKernels& cells_;
  WorkerPool pool_{1};
  KvCache cache_;
  std::vector<std::uint32_t> blocks_;
  std::vector<float> keys_, values_, queries_;
};

TEST(AttentionKernels, AgreeWithPlainAttention) {
  for (const Case& kind : AllCases()) {
    for (const Shape& shape : kShapes) {
      Problem problem(kind, shape);
      const std::size_t position = shape.positions - 1;
      const std::vector<float> out = problem.Attend(position, 1);
      for (std::size_t head = 0; head < shape.group; ++head) {
        const std::vector<double> plain = problem.Plain(position, head);
        for (std::size_t d = 0; d < shape.Values(); ++d) {
          ASSERT_NEAR(out[head * shape.Values() + d], plain[d], kind.Tolerance())
              << kind.Name() << ", group " << shape.group << ", dimensions " << shape.dim
              << ", head " << head << ", dimension " << d;
        }
      }
    }
  }
}

TEST(AttentionKernels, ARowHasTheSameBitsInEveryTile) {
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
            << kind.Name() << ", group " << shape.group << ", dimensions " << shape.dim
            << ", token " << i << " of " << tokens;
      }
    }
  }
}

// Includes the first position of a partition, which has only its own cell in that partition.
TEST(AttentionKernels, PrefetchesAndCandidatesChangeNoBit) {
  for (const Case& kind : AllCases()) {
    for (std::size_t positions : {1, 2, 40, 256, 257, 258, 259, 513, 514}) {
      Problem problem(kind, {4, 64, 16, positions, 0});
      const std::size_t last = positions - 1;
      const std::vector<float> alone = problem.Attend(last, 1);
      const BlockRun blocks = problem.Blocks();
      const std::vector<BlockRun> many(5, blocks);
      const std::span<const BlockRun> all(many);
      for (std::size_t runs : {0, 1, 5}) {
        for (bool candidates : {false, true}) {
          ASSERT_EQ(problem.Attend(last, 1, all.first(runs), candidates), alone)
              << kind.Name() << ", " << positions << " positions, " << runs << " runs prefetched"
              << (candidates ? ", candidates" : "");
        }
      }
    }
  }
}

// A position's cell may move; a value that is not finite spoils what sees it and nothing else.
TEST(AttentionKernels, Int8KvOfValuesThatAreNotFinite) {
  const auto isa = ChooseIsa();
  ASSERT_TRUE(isa.ok());
  const CellKernels& cells = FindKernels(*isa, DType::kFloat32)->int8_cells;
  WorkerPool pool(1);
  KvCache cache;
  PagedLayout layout{UniformCaches(1, 1, 16), 16, DType::kFloat32};
  layout.kv_type = KvType::kInt8;
  ASSERT_TRUE(cache.Allocate(layout, 2, 0, pool).ok());
  const HeadCache head = cache.Head(0, 0);
  std::vector<float> k(16, 0.0f), v(16, 1.0f);
  const auto value_scale = [&head](std::uint32_t block, std::size_t offset) {
    float scale;
    std::memcpy(&scale,
                head.base + block * head.block_bytes + head.value_offset + 16 * 16 + offset * 4,
                sizeof scale);
    return scale;
  };
  cells.write_kv(head, 0, 3, k.data(), v.data(), true);
  EXPECT_EQ(value_scale(0, 3), 1.0f / 127.0f);
  v[5] = std::numeric_limits<float>::infinity();
  cells.write_kv(head, 0, 4, k.data(), v.data(), true);
  EXPECT_TRUE(std::isnan(value_scale(0, 4)));
  EXPECT_EQ(value_scale(0, 3), 1.0f / 127.0f);
  cells.copy_kv(head, {0, 3}, {1, 7});
  EXPECT_EQ(value_scale(1, 7), 1.0f / 127.0f);
}

}  // namespace
}  // namespace penstock::shard::cpu
