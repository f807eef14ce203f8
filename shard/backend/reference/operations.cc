#include "shard/backend/reference/operations.h"

#include <cmath>
#include <optional>

#include "shard/model/program.h"

namespace penstock::shard {
namespace {

void Product(const at::Tensor& x, const at::Tensor& weight_t, const at::Tensor& bias,
             at::Tensor out) {
  if (bias.defined()) {
    at::addmm_out(out, bias, x, weight_t);
  } else {
    at::mm_out(out, x, weight_t);
  }
}

}  // namespace

void RmsNorm(const at::Tensor& x, const at::Tensor& weight, double weight_offset, double eps,
             at::Tensor out) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = at::mean(wide.square(), {-1}, true).add_(eps).rsqrt_();
  if (!weight.defined()) {
    out.copy_(wide.mul(scale));
    return;
  }
  if (weight_offset != 0.0) {
    out.copy_(wide.mul(scale).mul_(weight.to(at::kFloat).add(weight_offset)));
    return;
  }
  if (out.scalar_type() == at::kFloat) {
    at::mul_out(out, wide, scale).mul_(weight);
    return;
  }
  out.copy_(wide.mul(scale)).mul_(weight);
}

void ScaleBySquares(at::Tensor x, const at::Tensor& squares, double elements,
                    const at::Tensor& weight, double eps) {
  const at::Tensor scale = squares.to(at::kFloat).div(elements).add_(eps).rsqrt_().unsqueeze(-1);
  x.copy_(x.to(at::kFloat).mul(scale)).mul_(weight);
}

void LayerNorm(const at::Tensor& x, const at::Tensor& weight, double weight_offset,
               const at::Tensor& bias, double eps, at::Tensor out) {
  const auto wide = [](const at::Tensor& vector, double added) -> std::optional<at::Tensor> {
    if (!vector.defined()) return std::nullopt;
    return vector.to(at::kFloat).add(added);
  };
  // Heads have weights of two dimensions: one for each head.
  const bool by_head = weight.defined() && weight.dim() > 1;
  if (!by_head) {
    out.copy_(at::layer_norm(x.to(at::kFloat), {x.size(-1)}, wide(weight, weight_offset),
                             wide(bias, 0.0), eps));
    return;
  }
  const at::Tensor normed = at::layer_norm(x.to(at::kFloat), {x.size(-1)}, {}, {}, eps);
  out.copy_(normed.mul(*wide(weight, weight_offset)));
}

void Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor out) {
  const at::Tensor weight_t = weight.t();
  const std::int64_t rows = x.size(0);
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) {
    Product(x, weight_t, bias, out);
    return;
  }
  for (std::int64_t row = 0; row < rows; row += kRowTile) {
    Product(x.narrow(0, row, kRowTile), weight_t, bias, out.narrow(0, row, kRowTile));
  }
}

void RotateHalves(at::Tensor x, const at::Tensor& cos, const at::Tensor& sin) {
  const std::int64_t half = cos.size(-1);
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor first = wide.narrow(-1, 0, half);
  const at::Tensor second = wide.narrow(-1, half, half);
  const at::Tensor rotated_first = at::mul(first, cos).addcmul_(second, sin, -1);
  const at::Tensor rotated_second = at::mul(second, cos).addcmul_(first, sin);
  x.narrow(-1, 0, half).copy_(rotated_first);
  x.narrow(-1, half, half).copy_(rotated_second);
}

void AddSinusoids(const at::Tensor& positions, at::Tensor out) {
  const std::int64_t half = out.size(1) / 2;
  const double step = -std::log(10000.0) / static_cast<double>(half - 1);
  const at::Tensor frequencies =
      at::arange(half, at::TensorOptions().dtype(at::kFloat).device(out.device()))
          .mul_(step)
          .exp_();
  const at::Tensor angles = positions.to(at::kFloat).unsqueeze(1).mul(frequencies);
  out.narrow(1, 0, half).add_(angles.sin());
  out.narrow(1, half, half).add_(angles.cos());
}

void Activate(const at::Tensor& x, Activation activation, at::Tensor out) {
  switch (activation) {
    case Activation::kSilu:
      at::silu_out(out, x);
      return;
    case Activation::kGelu:
    case Activation::kGeluTanh:
      at::gelu_out(out, x, activation == Activation::kGeluTanh ? "tanh" : "none");
      return;
    case Activation::kRelu:
      out.copy_(x.clamp_min(0));
      return;
    case Activation::kReluSquared:
      out.copy_(x.clamp_min(0).square_());
      return;
  }
}

void Xielu(const at::Tensor& x, const at::Tensor& positive, const at::Tensor& negative,
           at::Tensor out) {
  const at::Tensor wide = x.to(at::kFloat);
  const auto softplus = [](const at::Tensor& weight) {
    return weight.to(at::kFloat).exp().log1p();
  };
  const at::Tensor up = wide.square().mul(softplus(positive));
  const at::Tensor down =
      wide.clamp_max(XieluOp::kLeast).expm1().sub(wide).mul(softplus(negative).add(XieluOp::kBeta));
  out.copy_(up.where(wide.gt(0), down).add(wide, XieluOp::kBeta));
}

void SoftCap(at::Tensor x, double cap) { x.div_(cap).tanh_().mul_(cap); }

}  // namespace penstock::shard
