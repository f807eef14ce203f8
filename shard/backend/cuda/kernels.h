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

namespace penstock::shard::cuda {

using Stream = void*;

// out[r] = table[token - first], or zeros if the index is not in [0, count) and so another rank's.
// The token of row r is samples[newest[r]] if newest[r] is not -1 (run-ahead), else tokens[r].
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
};
absl::Status Embed(const EmbedArgs& args, DType dtype, Stream stream);

// in += add (unless null); out = RMSNorm(in) * weight. `out` may not be `in`.
struct NormArgs {
  void* in = nullptr;            // elements [rows, width]
  const void* add = nullptr;     // elements [rows, width]
  const void* weight = nullptr;  // elements [width]
  void* out = nullptr;           // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  float eps = 1e-6f;
  const void* bias = nullptr;  // elements [width]; of LayerNorm
};
absl::Status AddRmsNorm(const NormArgs& args, DType dtype, Stream stream);

// in += add (unless null); out = LayerNorm(in) * weight + bias. `out` may not be `in`.
absl::Status AddLayerNorm(const NormArgs& args, DType dtype, Stream stream);

// The layout of kQkv and of one layer of the cache.
struct HeadShape {
  std::uint32_t heads = 0;     // of this rank
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t head_dim = 0;  // even, at most 256
};

// RMSNorm of every query head and every key head, in place.
struct HeadNormArgs {
  void* qkv = nullptr;                 // elements [rows, (heads + 2 kv_heads) * head_dim]
  const void* query_weight = nullptr;  // elements [head_dim]
  const void* key_weight = nullptr;
  HeadShape shape;
  std::uint32_t rows = 0;
  float eps = 1e-6f;
};
absl::Status HeadRmsNorm(const HeadNormArgs& args, DType dtype, Stream stream);

// Rotates the first `rotary` dimensions of each query and key head in place (half-split pairs) and
// writes K and V to the cache.
struct RopeArgs {
  void* qkv = nullptr;
  const float* cos = nullptr;  // [positions, rotary / 2]
  const float* sin = nullptr;
  const std::int32_t* positions = nullptr;   // [rows]
  const std::int64_t* cache_rows = nullptr;  // [rows]: block * block_size + position % block_size
  void* keys = nullptr;                      // elements [cache rows, kv_heads, head_dim]
  void* values = nullptr;
  HeadShape shape;
  std::uint32_t rows = 0;
  std::uint32_t rotary = 0;  // even, at most head_dim
  bool fp8_cache = false;    // a byte per value: e4m3, the nearest to the element
};
absl::Status RopeKvWrite(const RopeArgs& args, DType dtype, Stream stream);

// out = silu(gate) * up, where a row of `in` is gate, then up.
struct GateArgs {
  const void* in = nullptr;  // elements [rows, 2 * width]
  void* out = nullptr;       // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
};
absl::Status SiluMul(const GateArgs& args, DType dtype, Stream stream);

// out = gelu(in), exact or by tanh.
struct GeluArgs {
  const void* in = nullptr;  // elements [rows, width]
  void* out = nullptr;       // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  bool tanh = false;
};
absl::Status Gelu(const GeluArgs& args, DType dtype, Stream stream);

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
// whatever the number of rows, and gated those of the product alone and SiluMul.
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
