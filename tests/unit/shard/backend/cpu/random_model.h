// A decoder of any shape with random weights and without files, for tests of odd sizes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shard/model/decoder_builder.h"
#include "shard/model/model_spec.h"
#include "shard/model/rank_share.h"
#include "shard/weights/loader.h"

namespace penstock::shard {

struct Shape {
  std::string name;
  std::uint32_t hidden, layers, heads, kv_heads, head_dim, intermediate;
  std::uint32_t vocabulary = 90;
  bool qkv_bias = false;
  bool qk_norm = false;
  bool tied = false;
  bool gpt_neox = false;
  std::uint32_t window = 0;  // of every second layer
};
inline void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

inline const char* TypeOf(const Shape& shape) {
  if (shape.gpt_neox) return "gpt_neox";
  return shape.qk_norm ? "qwen3" : "llama";
}

// The config.json of such a model.
inline std::string ConfigOf(const Shape& shape) {
  const auto number = [](const char* key, std::uint64_t value) {
    return std::string(", \"") + key + "\": " + std::to_string(value);
  };
  std::string windows;
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    const bool sliding = i % 2 == 0 && shape.window > 0;
    windows += std::string(i > 0 ? ", " : "") + (sliding ? "\"sliding" : "\"full") + "_attention\"";
  }
  return std::string("{\"model_type\": \"") + TypeOf(shape) + "\"" +
         number("hidden_size", shape.hidden) + number("num_hidden_layers", shape.layers) +
         number("num_attention_heads", shape.heads) +
         number("num_key_value_heads", shape.kv_heads) + number("head_dim", shape.head_dim) +
         number("intermediate_size", shape.intermediate) + number("vocab_size", shape.vocabulary) +
         number("max_position_embeddings", 4096) +
         number("sliding_window", std::max(1u, shape.window)) +
         ", \"use_sliding_window\": true, \"layer_types\": [" + windows +
         "], \"tie_word_embeddings\": " + (shape.tied ? "true" : "false") + "}";
}

inline ModelSpec SpecOf(const Shape& shape) {
  auto spec = ReadModelSpec(ConfigOf(shape), "");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : ModelSpec();
}

// The program of rank 0 of `world`.
inline BuiltProgram ProgramOf(const Shape& shape, std::uint32_t world = 1) {
  const ModelSpec spec = SpecOf(shape);
  return BuildProgram(spec, *MakeRankShare(spec, 0, world), [&shape](std::string_view name) {
    if (shape.tied && (name == "lm_head.weight" || name == "embed_out.weight")) return false;
    if (shape.gpt_neox || !name.ends_with(".bias")) return true;
    return shape.qkv_bias && name.ends_with("q_proj.bias");
  });
}

// Value of a stored tensor's element: the same for every rank.
inline float StoredValue(const WeightTarget& target, const WeightPart& part, std::uint64_t row,
                         std::uint64_t column) {
  const std::uint64_t stored_column = part.columns.first + column;
  std::uint64_t hash = std::hash<std::string_view>()(part.tensor);
  hash ^= ((part.rows.first + row) * 1000003 + stored_column + 1) * 0x9E3779B97F4A7C15u;
  // The finaliser of SplitMix64.
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9u;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBu;
  hash ^= hash >> 31;
  const float unit = static_cast<float>(hash >> 40) * 0x1p-23f - 1.0f;  // in [-1, 1)
  if (target.vector && target.name.find("norm") != std::string::npos) return 1.0f + 0.3f * unit;
  const float width = static_cast<float>(part.stored_shape.back());
  return unit * (target.vector ? 0.3f : 1.7f / __builtin_sqrtf(width));
}

inline void StoreAs(DType dtype, float value, std::byte* to) {
  if (dtype == DType::kFloat32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto upper = static_cast<std::uint16_t>(bits >> 16);
  std::memcpy(to, &upper, sizeof upper);
}

// The last token's embedding is NaN, unless it is also the head: a sequence with it has NaN logits.
inline constexpr std::uint64_t kNanToken = 89;
inline bool IsPoison(const WeightPlan& plan, const WeightTarget& target, std::uint64_t row) {
  const auto is_head = [](const WeightTarget& other) { return other.name == "head"; };
  return target.name == "embedding" && row == kNanToken &&
         std::any_of(plan.targets.begin(), plan.targets.end(), is_head);
}

inline LoadedWeights RandomWeights(const WeightPlan& plan, DType dtype) {
  LoadedWeights weights;
  auto region = MemoryRegion::Allocate(plan.Bytes(dtype));
  weights.memory = std::move(*region);
  std::byte* next = weights.memory.data();
  for (const WeightTarget& target : plan.targets) {
    const auto rows = static_cast<std::int64_t>(target.rows);
    weights.views.push_back(
        target.vector
            ? TensorView::Vector(next, rows, dtype)
            : TensorView::Matrix(next, rows, static_cast<std::int64_t>(target.columns), dtype));
    for (const WeightPart& part : target.parts) {
      for (std::uint64_t row = 0; row < part.rows.count; ++row) {
        for (std::uint64_t column = 0; column < part.columns.count; ++column) {
          const std::uint64_t at = (part.target_row + row) * target.columns + column;
          const float value = IsPoison(plan, target, row) ? __builtin_nanf("")
                                                          : StoredValue(target, part, row, column);
          StoreAs(dtype, value, next + at * DTypeBytes(dtype));
        }
      }
    }
    next += (weights.views.back().Bytes() + 63) / 64 * 64;
  }
  return weights;
}

}  // namespace penstock::shard
