#include "shard/model/rope_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;
constexpr double kMaxPosition = 2147483647.0;

absl::StatusOr<RopeType> ReadType(const ConfigReader& scaling) {
  const std::string_view key = scaling.Has("rope_type") ? "rope_type" : "type";
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, scaling.StringOr(key, "default"));
  if (name == "default") return RopeType::kDefault;
  if (name == "linear") return RopeType::kLinear;
  if (name == "dynamic") return RopeType::kDynamic;
  if (name == "llama3") return RopeType::kLlama3;
  if (name == "yarn") return RopeType::kYarn;
  return scaling.Bad(key, "one of default, linear, dynamic, llama3, yarn");
}

double YarnScale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

absl::Status ReadLlama3(const ConfigReader& scaling, RopeSpec& rope) {
  PENSTOCK_ASSIGN_OR_RETURN(rope.low_freq_factor, scaling.Number("low_freq_factor", 1e-3, 1e6));
  PENSTOCK_ASSIGN_OR_RETURN(rope.high_freq_factor, scaling.Number("high_freq_factor", 1e-3, 1e6));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return scaling.Bad("high_freq_factor", "above `low_freq_factor`");
  }
  return absl::OkStatus();
}

absl::Status ReadYarn(const ConfigReader& scaling, RopeSpec& rope) {
  PENSTOCK_ASSIGN_OR_RETURN(rope.beta_fast, scaling.NumberOr("beta_fast", 32.0, 1e-3, 1e6));
  PENSTOCK_ASSIGN_OR_RETURN(rope.beta_slow, scaling.NumberOr("beta_slow", 1.0, 1e-3, 1e6));
  PENSTOCK_ASSIGN_OR_RETURN(rope.truncate, scaling.BoolOr("truncate", true));
  PENSTOCK_ASSIGN_OR_RETURN(const double mscale, scaling.NumberOr("mscale", 0.0, 0.0, 1e3));
  PENSTOCK_ASSIGN_OR_RETURN(const double all, scaling.NumberOr("mscale_all_dim", 0.0, 0.0, 1e3));
  const double inferred = mscale != 0.0 && all != 0.0
                              ? YarnScale(rope.factor, mscale) / YarnScale(rope.factor, all)
                              : YarnScale(rope.factor, 1.0);
  PENSTOCK_ASSIGN_OR_RETURN(rope.attention_factor,
                            scaling.NumberOr("attention_factor", inferred, 1e-3, 1e3));
  return absl::OkStatus();
}

absl::Status ReadScaling(const ConfigReader& scaling, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  const double max_position = spec.max_position;
  PENSTOCK_ASSIGN_OR_RETURN(rope.type, ReadType(scaling));
  PENSTOCK_ASSIGN_OR_RETURN(rope.theta, scaling.NumberOr("rope_theta", rope.theta, 1.0, kMaxTheta));
  if (rope.type == RopeType::kDefault || rope.type == RopeType::kDynamic) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(
      rope.original_max_position,
      scaling.NumberOr("original_max_position_embeddings", max_position, 1.0, kMaxPosition));
  if (rope.type == RopeType::kYarn && !scaling.Has("factor")) {
    rope.factor = std::max(1.0, max_position / rope.original_max_position);
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(rope.factor, scaling.Number("factor", 1.0, kMaxFactor));
  }
  double extended = max_position;
  if (rope.type == RopeType::kLinear) extended = max_position * rope.factor;
  if (rope.type == RopeType::kYarn) extended = rope.original_max_position * rope.factor;
  spec.max_position =
      static_cast<std::uint32_t>(std::min(kMaxPosition, std::max(max_position, extended)));
  if (rope.type == RopeType::kLlama3) return ReadLlama3(scaling, rope);
  if (rope.type == RopeType::kYarn) return ReadYarn(scaling, rope);
  return absl::OkStatus();
}

// In transformers 5, each layer type can have RoPE parameters of its own. Refuses that form.
absl::Status RefuseNested(const ConfigReader& parameters) {
  for (const char* key : {"full_attention", "sliding_attention"}) {
    if (parameters.Has(key)) {
      return parameters.Bad(key, "absent: RoPE per layer type is not supported");
    }
  }
  return absl::OkStatus();
}

// If `key` is there, it says how many dimensions of a head are rotated: all, if `whole` is set.
absl::Status ReadPart(const ConfigReader& config, const char* key, bool whole, ModelSpec& spec) {
  if (!config.Has(key)) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const double part, config.Number(key, 0.0, 1.0));
  if (whole && part != 1.0) return config.Bad(key, "1 for this model type");
  spec.rope.dim = static_cast<std::uint32_t>(spec.head_dim * part);
  if (spec.rope.dim >= 2 && spec.rope.dim % 2 == 0) return absl::OkStatus();
  return config.Bad(key, "an even number of the " + std::to_string(spec.head_dim) +
                             " dimensions of a head, as a share");
}

}  // namespace

absl::Status ReadRope(const ConfigReader& config, const RopeKeys& keys, ModelSpec& spec) {
  constexpr char kPart[] = "partial_rotary_factor";
  const bool whole = keys.part == nullptr;
  spec.rope.dim = static_cast<std::uint32_t>(spec.head_dim * keys.default_part);
  PENSTOCK_RETURN_IF_ERROR(ReadPart(config, whole ? kPart : keys.part, whole, spec));
  PENSTOCK_ASSIGN_OR_RETURN(spec.rope.theta, config.NumberOr(keys.theta, 10000.0, 1.0, kMaxTheta));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto scaling, config.Object(key));
    if (!scaling.has_value()) continue;
    PENSTOCK_RETURN_IF_ERROR(RefuseNested(*scaling));
    PENSTOCK_RETURN_IF_ERROR(ReadPart(*scaling, kPart, whole, spec));
    PENSTOCK_RETURN_IF_ERROR(ReadScaling(*scaling, spec));
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
