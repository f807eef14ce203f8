#include "shard/backend/cuda/program_check.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/bad_option.h"
#include "common/status.h"
#include "shard/backend/cuda/experts.h"
#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::uint32_t kMaxHeadDim = 256;

// What an operation asks for that there is no kernel for; "" if there is one.
std::string_view Missing(const PositionsOp& op) { return op.parts > 0 ? "parts of texts" : ""; }
std::string_view Missing(const NormOp& op) {
  return op.in == Buffer::kQueryDown ? "latent attention" : "";
}
std::string_view Missing(const RopeKvWriteOp& op) {
  if (!op.keys) return "layers that reuse K and V";
  return op.heads.value_dim != op.heads.key_dim ? "values narrower than keys" : "";
}
std::string_view Missing(const AttentionOp& op) {
  return op.both_ways ? "attention in both directions" : "";
}
std::string_view Missing(const ExpertsOp& op) {
  if (op.routing.kind == Routing::Kind::kSparseMixer) return "routers that are sparse mixers";
  if (op.routing.experts > kMostExperts) return "more than 1024 experts of a layer";
  return op.routing.chosen > kMostChosen ? "more than 32 experts of a token" : "";
}
std::string_view Missing(const GroupNormOp& op) { return op.kName; }
std::string_view Missing(const MultiplyOp& op) { return op.kName; }
std::string_view Missing(const ScaleOp& op) { return op.kName; }
std::string_view Missing(const DeltaNetOp& op) { return op.kName; }
std::string_view Missing(const XieluOp& op) { return op.kName; }
std::string_view Missing(const ShortConvOp& op) { return op.kName; }
std::string_view Missing(const LatentWriteOp&) { return "latent attention"; }
std::string_view Missing(const HeadLinearOp&) { return "latent attention"; }
std::string_view Missing(const auto&) { return ""; }

bool SameHeadsEverywhere(const Program& program) {
  const AttentionOp* first = nullptr;
  for (const Op& op : program.body) {
    const auto* attention = std::get_if<AttentionOp>(&op);
    if (attention == nullptr) continue;
    if (first == nullptr) first = attention;
    if (attention->heads != first->heads) return false;
  }
  return true;
}

}  // namespace

HeadShape HeadsOf(const Program& program) {
  for (const Op& op : program.body) {
    const auto* attention = std::get_if<AttentionOp>(&op);
    if (attention == nullptr) continue;
    return {attention->heads.query_heads, attention->heads.kv_heads, attention->heads.key_dim};
  }
  return {};
}

absl::Status CheckCudaBackend(const Program& program, DType dtype) {
  if (program.head.empty()) {
    return absl::UnimplementedError("the cuda backend has no kernel for vectors of texts");
  }
  for (const std::vector<Op>* ops : {&program.body, &program.head}) {
    for (const Op& op : *ops) {
      const std::string_view missing =
          std::visit([](const auto& typed) { return Missing(typed); }, op);
      if (missing.empty()) continue;
      return absl::UnimplementedError("the cuda backend has no kernel for " + std::string(missing));
    }
  }

  if (dtype != DType::kFloat32 && dtype != DType::kBFloat16) {
    return absl::UnimplementedError("the cuda backend computes in float32 and bfloat16, not in " +
                                    std::string(DTypeName(dtype)));
  }
  if (!SameHeadsEverywhere(program)) {
    return absl::UnimplementedError(
        "the cuda backend has no kernel for heads that differ by layer");
  }
  const HeadShape heads = HeadsOf(program);
  if (heads.head_dim > kMaxHeadDim || heads.head_dim % 2 != 0) {
    return absl::UnimplementedError("the cuda backend needs an even head_dim of at most 256. " +
                                    ("Given: " + std::to_string(heads.head_dim)));
  }
  const std::uint32_t group = heads.heads / std::max(1u, heads.kv_heads);
  if (group > kMaxQueries) {
    return absl::UnimplementedError(
        "the cuda backend takes at most 16 query heads per KV head. Given: " +
        std::to_string(group));
  }
  return absl::OkStatus();
}

absl::Status CheckBatchInvariant(const Program& program, DType dtype) {
  const auto check = [&](std::uint32_t in_width) -> absl::Status {
    const LinearArgs args{.rows = 1, .in_width = in_width, .out_width = 1};
    if (IsSkinny(args, dtype)) return absl::OkStatus();
    return absl::UnimplementedError(
        "`batch-invariant` on a GPU needs --dtype bfloat16 and products whose inputs have a "
        "multiple of 32 columns; this model has " +
        std::string(DTypeName(dtype)) + " and " + std::to_string(in_width) + " columns");
  };
  for (const std::vector<Op>* ops : {&program.body, &program.head}) {
    for (const Op& op : *ops) {
      if (const auto* linear = std::get_if<LinearOp>(&op)) {
        PENSTOCK_RETURN_IF_ERROR(check(program.Width(linear->in)));
      } else if (const auto* experts = std::get_if<ExpertsOp>(&op)) {
        PENSTOCK_RETURN_IF_ERROR(check(experts->width));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckQuantization(Quantization quantization, DType dtype) {
  if (quantization == Quantization::kInt4) {
    return BadOption("quantize", "int4", "int8 or fp8 on a GPU; int4 is for backend cpu");
  }
  if (quantization == Quantization::kNone || dtype == DType::kBFloat16) return absl::OkStatus();
  return absl::UnimplementedError("`quantize` " + std::string(QuantizationName(quantization)) +
                                  " on a GPU needs --dtype bfloat16; this model has " +
                                  std::string(DTypeName(dtype)));
}

absl::Status CheckKvType(KvType type, AttentionKind kind) {
  if (type == KvType::kAuto) return absl::OkStatus();
  if (type != KvType::kFp8) {
    return absl::UnimplementedError(
        "`kv-cache-dtype` must be auto or fp8_e4m3fn on a GPU. Given: " +
        std::string(KvTypeName(type)));
  }
  if (kind != AttentionKind::kFloat) return absl::OkStatus();
  return absl::UnimplementedError(
      "`kv-cache-dtype` fp8_e4m3fn needs attention on tensor cores: --dtype bfloat16 and heads of "
      "16, 64, 80, 96, 128 or 256 dimensions");
}

}  // namespace penstock::shard::cuda
