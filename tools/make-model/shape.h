// Sizes and tensor tables of the checkpoints that penstock-make-model writes.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/dtype.h"
#include "shard/weights/safetensors_writer.h"

namespace penstock::make_model {

struct Shape {
  std::string_view name;
  std::uint32_t hidden;
  std::uint32_t layers;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  std::uint32_t intermediate;
  std::uint32_t vocabulary;
  std::uint32_t max_position;
  double rope_theta;
  bool tied_head;
};

// Real shapes: 135m SmolLM-135M, 0.5b Qwen2.5-0.5B, 1.1b TinyLlama-1.1B, 8b Llama-3-8B; tiny is
// made for tests (world sizes 1, 2, 4 and 8).
const Shape& ShapeNamed(std::string_view name);  // one of ShapeNames()
std::string ShapeNames();                        // "tiny|135m|…"

inline constexpr double kNormEpsilon = 1e-5;

// A model type: which tensors there are and the key names of config.json.
struct ModelKind {
  std::string_view type;
  std::string_view architecture;
  bool qkv_bias;
  bool qk_norm;
};
inline bool IsGptNeox(const ModelKind& kind) { return kind.type == "gpt_neox"; }
const ModelKind& KindNamed(std::string_view type);
std::string KindNames();

// A tensor and the distribution of its values: mean + scale * standard normal.
struct TensorRecipe {
  shard::TensorSpec tensor;
  float mean = 0.0f;
  float scale = 0.0f;
};

// In the order of the files. Scales keep activations near 1, so that logits have a standard
// deviation near 3 whatever the size.
std::vector<TensorRecipe> Recipes(const Shape& shape, const ModelKind& kind, DType dtype);

// 0 = no window.
std::string ConfigJson(const Shape& shape, const ModelKind& kind, DType dtype,
                       std::uint32_t sliding_window, std::int32_t bos,
                       const std::vector<std::int32_t>& eos);

}  // namespace penstock::make_model
