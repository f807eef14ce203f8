// Operations of a Program on ATen tensors of shape [rows, width], row-major.
#pragma once

#include "shard/backend/reference/aten.h"
#include "shard/model/activation.h"

namespace penstock::shard {

// Rows of a float32 GEMM on the CPU (see reference_backend.h).
inline constexpr std::int64_t kRowTile = 16;

// out = x / rms(x) * (weight + weight_offset) over the last dimension. Computed in float32. Without
// an offset it is rounded to out's type before the weight, with one after it, as in transformers.
// weight may be undefined. x and out may be the same.
void RmsNorm(const at::Tensor& x, const at::Tensor& weight, double weight_offset, double eps,
             at::Tensor out);

// x = x / sqrt(squares / elements + eps) * weight, with one of `squares` for each row.
void ScaleBySquares(at::Tensor x, const at::Tensor& squares, double elements,
                    const at::Tensor& weight, double eps);

// out = (x - mean) / deviation * (weight + weight_offset) + bias over the last dimension, in
// float32, rounded once. weight and bias may be undefined.
void LayerNorm(const at::Tensor& x, const at::Tensor& weight, double weight_offset,
               const at::Tensor& bias, double eps, at::Tensor out);

// out = x * weight^T + bias. bias may be undefined. float32 on the CPU: the rows of x are a
// multiple of kRowTile.
void Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor out);

// Rotates the first 2 * half dimensions of x [rows, heads, head_dim] in place. cos and sin: float32
// [rows, 1, half].
void RotateHalves(at::Tensor x, const at::Tensor& cos, const at::Tensor& sin);

// Adds sines and cosines of the positions [rows] (PositionsOp).
void AddSinusoids(const at::Tensor& positions, at::Tensor out);

void Activate(const at::Tensor& x, Activation activation, at::Tensor out);

// `positive` and `negative` are the weights of an XieluOp.
void Xielu(const at::Tensor& x, const at::Tensor& positive, const at::Tensor& negative,
           at::Tensor out);

// x = cap * tanh(x / cap).
void SoftCap(at::Tensor x, double cap);

}  // namespace penstock::shard
