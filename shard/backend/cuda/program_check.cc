#include "shard/backend/cuda/program_check.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::uint32_t kMaxHeadDim = 256;

// What an operation asks for that there is no kernel for; "" if there is one.
std::string_view Missing(const EmbedOp& op) { return op.scale != 1.0f ? "scaled embeddings" : ""; }
std::string_view Missing(const PositionsOp& op) { return op.kName; }
std::string_view Missing(const NormOp& op) {
  if (op.in == Buffer::kQueryDown) return "latent attention";
  if (op.kind == NormKind::kCopy || op.in != Buffer::kHidden || op.out != Buffer::kNormed) {
    return "norms after a branch";
  }
  if (op.add_scale != 1.0f) return "scaled branches";
  if (op.weight_offset != 0.0f) return "norms with an offset";
  const bool whole = op.weight != kNoWeight && (op.kind == NormKind::kRms || op.bias != kNoWeight);
  return whole ? "" : "norms without weights";
}
std::string_view Missing(const HeadNormOp& op) {
  if (op.values) return "norms of value heads";
  if (op.kind != NormKind::kRms || op.plain) return "head norms other than RMSNorm with weights";
  return op.weight_offset != 0.0f ? "norms with an offset" : "";
}
std::string_view Missing(const RopeKvWriteOp& op) {
  if (op.growth.rate != 0.0f) return "queries that grow with the position";
  if (!op.writes && op.keys) return "head norms after RoPE";
  if (!op.writes) return "layers that reuse K and V";
  if (op.heads.value_dim != op.heads.key_dim) return "values narrower than keys";
  return op.rope != 0 ? "RoPE that differs by layer" : "";
}
std::string_view Missing(const AttentionOp& op) {
  if (op.both_ways) return "attention in both directions";
  if (op.sinks != kNoWeight) return "attention sinks";
  if (!op.alibi.slopes.empty()) return "linear biases of attention";
  if (op.chunk > 0) return "chunked attention";
  return op.softcap != 0.0f ? "softcaps" : "";
}
std::string_view Missing(const GatedActivationOp& op) {
  return op.activation != Activation::kSilu ? "gates other than SiLU" : "";
}
std::string_view Missing(const ActivationOp& op) {
  const bool gelu = op.activation == Activation::kGelu || op.activation == Activation::kGeluTanh;
  return gelu ? "" : "activations other than GELU";
}
std::string_view Missing(const ExpertsOp& op) { return op.kName; }
std::string_view Missing(const GateRowsOp& op) { return op.kName; }
std::string_view Missing(const GroupNormOp& op) { return op.kName; }
std::string_view Missing(const MultiplyOp& op) { return op.kName; }
std::string_view Missing(const ScaleOp& op) { return op.kName; }
std::string_view Missing(const GateOp& op) { return op.kName; }
std::string_view Missing(const DeltaNetOp& op) { return op.kName; }
std::string_view Missing(const SquaresOp&) { return WidthNormOp::kName; }
std::string_view Missing(const WidthNormOp& op) { return op.kName; }
std::string_view Missing(const ClampOp& op) { return op.kName; }
std::string_view Missing(const ScaleLogitsOp&) { return "scaled logits"; }
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

  for (const RopeSpec& rope : program.ropes) {
    if (!rope.DependsOnLength()) continue;
    return absl::UnimplementedError(
        "the cuda backend has no kernel for RoPE that depends on the length of the text");
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
  for (const std::vector<Op>* ops : {&program.body, &program.head}) {
    for (const Op& op : *ops) {
      const auto* linear = std::get_if<LinearOp>(&op);
      if (linear == nullptr) continue;
      const LinearArgs args{.rows = 1, .in_width = program.Width(linear->in), .out_width = 1};
      if (IsSkinny(args, dtype)) continue;
      return absl::UnimplementedError(
          "`batch-invariant` on a GPU needs --dtype bfloat16 and products whose inputs have a "
          "multiple of 32 columns; this model has " +
          std::string(DTypeName(dtype)) + " and " + std::to_string(args.in_width) + " columns");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckQuantization(Quantization quantization, DType dtype) {
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
