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
};

// The same for at most kMostSkinnyRows rows in bfloat16, by a kernel whose time is that of
// reading the weights. `in` and `weight` begin at multiples of 16 bytes. A row has the same bits
// whatever the number of rows, and gated those of the product alone and SiluMul.
struct SkinnyArgs {
  LinearArgs linear;
  bool gated = false;  // out = silu(gate) * up [rows, out_width / 2]; `weight` has gate, then up
};
inline constexpr std::uint32_t kMostSkinnyRows = 32;
inline constexpr std::uint32_t kSkinnyStep = 32;  // in_width is a multiple of it
inline bool IsSkinny(const LinearArgs& args, DType dtype) {
  return dtype == DType::kBFloat16 && args.rows <= kMostSkinnyRows &&
         args.in_width % kSkinnyStep == 0;
}
inline bool IsSkinny(const SkinnyArgs& args, DType dtype) {
  return IsSkinny(args.linear, dtype) &&
         (!args.gated || (!args.linear.accumulate && args.linear.out_width % 2 == 0));
}
absl::Status SkinnyLinear(const SkinnyArgs& args, Stream stream);

// Whether a kernel may begin before the one ahead of it in the stream is complete, so that the time
// between them is not lost. Only for devices of compute capability 9.0 and newer. Not while a
// kernel is launched; at first they may not.
void LetKernelsOverlap(bool overlap);

// Elements to float32 and back, for sums over the ranks and for logits.
absl::Status Widen(const void* in, float* out, std::uint64_t count, DType dtype, Stream stream);
absl::Status Narrow(const float* in, void* out, std::uint64_t count, DType dtype, Stream stream);

}  // namespace penstock::shard::cuda
