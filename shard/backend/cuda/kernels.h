// Plain functions that launch the CUDA kernels of the forward pass. They need no CUDA header, so
// code that calls them compiles and is tested without CUDA.
//
// Shapes are row-major. Buffers of elements have the model's dtype. Sums, norms, angles and softmax
// are float32, and each result is rounded once. A row of an output depends on its own inputs alone.
// The order of its operations depends neither on the number of rows nor on other sequences, but for
// attention on tensor cores (paged_attention.h).
//
// Launches are asynchronous on `stream`, a cudaStream_t, and may be captured: nothing is allocated
// and nothing waits. Returned errors are those of the launch itself.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "common/dtype.h"
#include "shard/model/activation.h"

namespace penstock::shard::cuda {

using Stream = void*;

// out[r] = table[token - first] * scale, or zeros if the index is not in [0, count) and so another
// rank's. The token of row r is samples[newest[r]] if newest[r] is not -1 (run-ahead), else
// tokens[r].
struct EmbedArgs {
  const std::int32_t* tokens = nullptr;  // [rows]
  const void* table = nullptr;           // elements [count, width]
  void* out = nullptr;                   // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  const std::int32_t* newest = nullptr;  // [rows]; null: -1 for every row
  const std::int32_t* samples = nullptr;
  float scale = 1.0f;
};
absl::Status Embed(const EmbedArgs& args, DType dtype, Stream stream);

// out[r] += table[position + offset], or without a table the sinusoids of PositionsOp.
struct PositionArgs {
  const std::int32_t* positions = nullptr;  // [rows]
  const void* table = nullptr;              // elements [entries, width], or null
  void* out = nullptr;                      // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  std::uint32_t offset = 0;
  std::uint32_t entries = 0;  // above every position + offset
};
absl::Status AddPositions(const PositionArgs& args, DType dtype, Stream stream);

// in += add * add_scale (unless null); out = norm(in) * (weight + weight_offset) + bias. `out` may
// be `in`.
struct NormArgs {
  void* in = nullptr;            // elements [rows, width]
  const void* add = nullptr;     // elements [rows, width]
  const void* weight = nullptr;  // elements [width]; null: ones
  void* out = nullptr;           // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  float eps = 1e-6f;
  const void* bias = nullptr;  // elements [width]; of LayerNorm; null: zeros
  float add_scale = 1.0f;
  float weight_offset = 0.0f;
};
absl::Status AddRmsNorm(const NormArgs& args, DType dtype, Stream stream);
absl::Status AddLayerNorm(const NormArgs& args, DType dtype, Stream stream);
// Without a norm: out = in.
absl::Status AddAndCopy(const NormArgs& args, DType dtype, Stream stream);

// The layout of kQkv and of one layer of the cache.
struct HeadShape {
  std::uint32_t heads = 0;     // of this rank
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t head_dim = 0;  // even, at most 256
};

// Norm of every query head and every key head, in place. Heads without a weight stay as they are
// unless `plain` is set. With `values` value heads are normalised too, without a weight.
struct HeadNormArgs {
  void* qkv = nullptr;                 // elements [rows, (heads + 2 kv_heads) * head_dim]
  const void* query_weight = nullptr;  // elements [head_dim]
  const void* key_weight = nullptr;
  HeadShape shape;
  std::uint32_t rows = 0;
  float eps = 1e-6f;
  bool layer_norm = false;           // else RMSNorm
  const void* query_bias = nullptr;  // of LayerNorm; null: zeros
  const void* key_bias = nullptr;
  bool by_head = false;  // weights and biases are [heads, head_dim] and [kv_heads, head_dim]
  float weight_offset = 0.0f;
  bool plain = false;
  bool values = false;
};
absl::Status HeadNorm(const HeadNormArgs& args, DType dtype, Stream stream);

// For each row the sum of squares of all query heads, then that of all key heads.
struct SquaresArgs {
  const void* qkv = nullptr;  // as above
  float* out = nullptr;       // [rows, 2]
  HeadShape shape;
  std::uint32_t rows = 0;
};
absl::Status SumSquares(const SquaresArgs& args, DType dtype, Stream stream);

// RMSNorm over all query heads, and over all key heads, in place.
struct WidthNormArgs {
  void* qkv = nullptr;                 // as above
  const float* squares = nullptr;      // [rows, 2]: their sums over all ranks
  const void* query_weight = nullptr;  // elements [heads * head_dim]
  const void* key_weight = nullptr;    // elements [kv_heads * head_dim]
  HeadShape shape;
  std::uint32_t rows = 0;
  std::uint32_t query_elements = 0;  // of all ranks
  std::uint32_t key_elements = 0;
  float eps = 1e-6f;
};
absl::Status WidthNorm(const WidthNormArgs& args, DType dtype, Stream stream);

// Rotates the first `rotary` dimensions of each query and key head in place (half-split pairs),
// lets queries grow, and writes K and V to the cache.
struct RopeArgs {
  void* qkv = nullptr;
  const float* cos = nullptr;  // [positions, rotary / 2]
  const float* sin = nullptr;
  const std::int32_t* positions = nullptr;   // [rows]
  const std::int64_t* cache_rows = nullptr;  // [rows]: block * block_size + position % block_size
  void* keys = nullptr;                      // elements [cache rows, kv_heads, head_dim], or null
  void* values = nullptr;
  HeadShape shape;
  std::uint32_t rows = 0;
  std::uint32_t rotary = 0;  // even, at most head_dim
  bool by_row = false;       // `cos` and `sin` are [rows, rotary / 2] instead
  bool fp8_cache = false;    // a byte per value: e4m3, the nearest to the element
  // QueryGrowth; a rate of 0: queries stay as they are.
  float growth_rate = 0.0f;
  std::uint32_t growth_period = 1;
  std::uint32_t growth_first = 0;
};
absl::Status RopeKvWrite(const RopeArgs& args, DType dtype, Stream stream);

// out = activation(in), or out = activation(gate) * up, where a row of `in` is gate, then up.
struct ActivationArgs {
  const void* in = nullptr;  // elements [rows, width], or [rows, 2 * width]
  void* out = nullptr;       // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  Activation activation = Activation::kSilu;
};
absl::Status Activate(const ActivationArgs& args, DType dtype, Stream stream);
absl::Status ActivateGate(const ActivationArgs& args, DType dtype, Stream stream);

// The same with the gate of gpt-oss (BoundedGate).
struct BoundedGateArgs {
  const void* in = nullptr;  // elements [rows, 2 * width]
  void* out = nullptr;       // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  float alpha = 1.0f;
  float limit = 1.0f;
};
absl::Status ActivateBoundedGate(const BoundedGateArgs& args, DType dtype, Stream stream);

// values *= sigmoid(gates).
struct SigmoidGateArgs {
  void* values = nullptr;       // elements [rows, width]
  const void* gates = nullptr;  // elements [rows, width], or [rows, 1]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  bool one_per_row = false;
};
absl::Status MultiplyBySigmoid(const SigmoidGateArgs& args, DType dtype, Stream stream);

// Bounds `count` values by -limit and limit.
absl::Status Clamp(void* values, std::uint64_t count, float limit, DType dtype, Stream stream);

// x = scale * x, then softcap * tanh(x / softcap) unless it is 0.
absl::Status ScaleLogits(float* logits, std::uint64_t count, float scale, float softcap,
                         Stream stream);

// out[i] = in[chosen[i]].
struct SelectArgs {
  const void* in = nullptr;
  const std::int32_t* chosen = nullptr;  // [rows]
  void* out = nullptr;                   // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
};
absl::Status SelectRows(const SelectArgs& args, DType dtype, Stream stream);

// How a matrix of weights is stored. kFp8 (e4m3) and kInt8 have a byte per weight and a float32
// scale per row; a weight is its stored value times the scale.
enum class WeightForm : std::uint8_t { kPlain, kFp8, kInt8 };

// out = in * weight^T (+ bias), or out += that. Elements of the model's dtype, sums in float32.
struct LinearArgs {
  const void* in = nullptr;      // [rows, in_width]
  const void* weight = nullptr;  // [out_width, in_width]
  const void* bias = nullptr;    // [out_width] or null
  void* out = nullptr;           // [rows, out_width]
  std::uint32_t rows = 0;
  std::uint32_t in_width = 0;
  std::uint32_t out_width = 0;
  bool accumulate = false;
  WeightForm form = WeightForm::kPlain;
  const float* scales = nullptr;  // [out_width]; null for kPlain
};

// The same for at most MostSkinnyRows rows in bfloat16, by a kernel whose time is that of
// reading the weights. `in` and `weight` begin at multiples of 16 bytes. A row has the same bits
// whatever the number of rows, and gated those of the product alone and ActivateGate.
struct SkinnyArgs {
  LinearArgs linear;
  bool gated = false;  // out = silu(gate) * up [rows, out_width / 2]; `weight` has gate, then up
};
constexpr std::uint32_t MostSkinnyRows(WeightForm form) {
  return form == WeightForm::kPlain ? 32 : 64;
}
// in_width is a multiple of it: four lanes load 16 bytes each.
constexpr std::uint32_t SkinnyStep(WeightForm form) { return form == WeightForm::kPlain ? 32 : 64; }
inline bool IsSkinny(const LinearArgs& args, DType dtype) {
  return dtype == DType::kBFloat16 && args.rows <= MostSkinnyRows(args.form) &&
         args.in_width % SkinnyStep(args.form) == 0;
}
inline bool IsSkinny(const SkinnyArgs& args, DType dtype) {
  return IsSkinny(args.linear, dtype) &&
         (!args.gated || (!args.linear.accumulate && args.linear.out_width % 2 == 0));
}
absl::Status SkinnyLinear(const SkinnyArgs& args, Stream stream);

// Between rows of bfloat16 and rows of a form other than kPlain; `width` is a multiple of 64.
// Quantizing chooses the scales: the largest value of a row becomes 127 for kInt8. Scales of kFp8
// are powers of two, so that the bfloat16 rows that expanding gives are the stored values exactly.
// Expanding rounds once.
struct FormArgs {
  void* plain = nullptr;    // bfloat16 [rows, width]
  void* stored = nullptr;   // bytes [rows, width]
  float* scales = nullptr;  // [rows]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  WeightForm form = WeightForm::kFp8;
};
absl::Status QuantizeRows(const FormArgs& args, Stream stream);
absl::Status ExpandRows(const FormArgs& args, Stream stream);

// Whether a kernel may begin before the one ahead of it in the stream is complete, so that the time
// between them is not lost. Only for devices of compute capability 9.0 and newer. Not while a
// kernel is launched; at first they may not.
void LetKernelsOverlap(bool overlap);

// Elements to float32 and back, for sums over the ranks and for logits.
absl::Status Widen(const void* in, float* out, std::uint64_t count, DType dtype, Stream stream);
absl::Status Narrow(const float* in, void* out, std::uint64_t count, DType dtype, Stream stream);

}  // namespace penstock::shard::cuda
