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
  if (name == "longrope" || name == "su") return RopeType::kLongrope;
  return scaling.Bad(key, "one of default, linear, dynamic, llama3, yarn, longrope");
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

// The factors of long texts would change the K and V of positions that are in the cache already. So
// texts end at the original length.
absl::Status ReadLongrope(const ConfigReader& config, const ConfigReader& scaling,
                          ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  constexpr char kOriginal[] = "original_max_position_embeddings";
  const ConfigReader& where = config.Has(kOriginal) ? config : scaling;
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::uint32_t original,
      where.IntegerOr(kOriginal, spec.max_position, 2, static_cast<std::uint32_t>(kMaxPosition)));
  PENSTOCK_ASSIGN_OR_RETURN(rope.factors, scaling.Numbers("short_factor", 1e-6, kMaxFactor));
  if (rope.factors.size() != rope.dim / 2) {
    return scaling.Bad("short_factor", "a list of " + std::to_string(rope.dim / 2) + " numbers");
  }
  const double extended = static_cast<double>(spec.max_position) / original;
  PENSTOCK_ASSIGN_OR_RETURN(const double factor,
                            scaling.NumberOr("factor", extended, 1e-3, kMaxFactor));
  const double inferred =
      factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
  PENSTOCK_ASSIGN_OR_RETURN(rope.attention_factor,
                            scaling.NumberOr("attention_factor", inferred, 1e-3, 1e3));
  spec.max_position = std::min(spec.max_position, original);
  return absl::OkStatus();
}

absl::Status ReadScaling(const ConfigReader& config, const ConfigReader& scaling, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  const double max_position = spec.max_position;
  PENSTOCK_ASSIGN_OR_RETURN(rope.type, ReadType(scaling));
  PENSTOCK_ASSIGN_OR_RETURN(rope.theta, scaling.NumberOr("rope_theta", rope.theta, 1.0, kMaxTheta));
  if (rope.type == RopeType::kDefault || rope.type == RopeType::kDynamic) return absl::OkStatus();
  if (rope.type == RopeType::kLongrope) return ReadLongrope(config, scaling, spec);
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

// `key` is the one that can say how many dimensions of a head are rotated.
absl::Status CheckRotated(const ConfigReader& config, const char* key, const ModelSpec& spec) {
  if (spec.rope.dim >= 2 && spec.rope.dim % 2 == 0) return absl::OkStatus();
  return config.Bad(key, "an even number of the " + std::to_string(spec.head_dim) +
                             " dimensions of a head, as a share");
}

// If `key` is there, it says how many dimensions of a head are rotated: all, if `whole` is set.
absl::Status ReadPart(const ConfigReader& config, const char* key, bool whole, ModelSpec& spec) {
  if (!config.Has(key)) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const double part, config.Number(key, 0.0, 1.0));
  if (whole && part != 1.0) return config.Bad(key, "1 for this model type");
  spec.rope.dim = static_cast<std::uint32_t>(spec.head_dim * part);
  return CheckRotated(config, key, spec);
}

}  // namespace

RopeSpec DefaultYarn(RopeSpec rope) {
  rope.type = RopeType::kYarn;
  rope.attention_factor = YarnScale(rope.factor, 1.0);
  return rope;
}

absl::Status ReadRope(const ConfigReader& config, const RopeKeys& keys, ModelSpec& spec) {
  constexpr char kPart[] = "partial_rotary_factor";
  const bool whole = keys.part == nullptr;
  spec.rope.dim = static_cast<std::uint32_t>(spec.head_dim * keys.default_part);
  PENSTOCK_RETURN_IF_ERROR(ReadPart(config, whole ? kPart : keys.part, whole, spec));
  PENSTOCK_ASSIGN_OR_RETURN(spec.rope.theta,
                            config.NumberOr(keys.theta, keys.default_theta, 1.0, kMaxTheta));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    PENSTOCK_ASSIGN_OR_RETURN(auto scaling, config.Object(key));
    if (!scaling.has_value() || (!keys.scaling && key == std::string_view("rope_scaling")))
      continue;
    if (keys.layer_type == nullptr) {
      PENSTOCK_RETURN_IF_ERROR(RefuseNested(*scaling));
    } else if (scaling->Has(keys.layer_type)) {
      PENSTOCK_ASSIGN_OR_RETURN(auto nested, scaling->Object(keys.layer_type));
      scaling.emplace(*nested);
    }
    PENSTOCK_RETURN_IF_ERROR(ReadPart(*scaling, kPart, whole, spec));
    PENSTOCK_RETURN_IF_ERROR(ReadScaling(config, *scaling, spec));
  }
  return CheckRotated(config, whole ? kPart : keys.part, spec);
}

}  // namespace penstock::shard
