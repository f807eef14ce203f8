#include "shard/backend/reference/operations.h"

#include <optional>

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

void LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
               at::Tensor out) {
  const auto wide = [](const at::Tensor& vector) -> std::optional<at::Tensor> {
    if (!vector.defined()) return std::nullopt;
    return vector.to(at::kFloat);
  };
  out.copy_(at::layer_norm(x.to(at::kFloat), {x.size(-1)}, wide(weight), wide(bias), eps));
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
  }
}

void SoftCap(at::Tensor x, double cap) { x.div_(cap).tanh_().mul_(cap); }

}  // namespace penstock::shard
