#include "shard/model/rope_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;
constexpr double kMaxRopePosition = 2147483647.0;

std::string_view TypeKey(const ConfigReader& scaling) {
  return scaling.Has("rope_type") ? "rope_type" : "type";
}

absl::StatusOr<RopeType> ReadType(const ConfigReader& scaling) {
  const std::string_view key = TypeKey(scaling);
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

void Extend(double positions, ModelSpec& spec) {
  const double longest = std::max<double>(spec.max_position, positions);
  spec.max_position = static_cast<std::uint32_t>(std::min(kMaxRopePosition, longest));
}

absl::StatusOr<std::vector<double>> ReadFactors(const ConfigReader& scaling, const char* key,
                                                std::uint32_t dim) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<double> factors, scaling.Numbers(key, 1e-6, kMaxFactor));
  if (factors.size() == dim / 2) return factors;
  return scaling.Bad(key, "a list of " + std::to_string(dim / 2) + " numbers");
}

absl::Status ReadLongrope(const ConfigReader& config, const ConfigReader& scaling,
                          ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  constexpr char kOriginal[] = "original_max_position_embeddings";
  const ConfigReader& where = config.Has(kOriginal) ? config : scaling;
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t original,
                            where.IntegerOr(kOriginal, spec.max_position, 2,
                                            static_cast<std::uint32_t>(kMaxRopePosition)));
  rope.original_max_position = original;
  PENSTOCK_ASSIGN_OR_RETURN(rope.factors, ReadFactors(scaling, "short_factor", rope.dim));
  PENSTOCK_ASSIGN_OR_RETURN(rope.long_factors, ReadFactors(scaling, "long_factor", rope.dim));
  const double extended = static_cast<double>(spec.max_position) / original;
  PENSTOCK_ASSIGN_OR_RETURN(const double factor,
                            scaling.NumberOr("factor", extended, 1e-3, kMaxFactor));
  double inferred = factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
  if (scaling.Has("short_mscale")) {  // Phi-3.5-MoE says it
    PENSTOCK_ASSIGN_OR_RETURN(inferred, scaling.Number("short_mscale", 1e-3, 1e3));
    PENSTOCK_ASSIGN_OR_RETURN(const double longer,
                              scaling.NumberOr("long_mscale", inferred, 1e-3, 1e3));
    if (longer != inferred) return scaling.Bad("long_mscale", "the same as `short_mscale`");
  }
  PENSTOCK_ASSIGN_OR_RETURN(rope.attention_factor,
                            scaling.NumberOr("attention_factor", inferred, 1e-3, 1e3));
  return absl::OkStatus();
}

// With `alpha`, as in Hunyuan models, the frequencies are the same for every length.
absl::Status ReadDynamic(const ConfigReader& scaling, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  if (rope.dim <= 2) {
    return scaling.Bad(TypeKey(scaling), "another type where 2 dimensions of a head are rotated");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const double alpha, scaling.NumberOr("alpha", 0.0, 0.0, kMaxTheta));
  if (alpha > 0.0) {
    rope.type = RopeType::kDefault;
    rope.theta *= std::pow(alpha, rope.dim / (rope.dim - 2.0));
    return absl::OkStatus();
  }
  rope.original_max_position = spec.max_position;
  PENSTOCK_ASSIGN_OR_RETURN(rope.factor, scaling.Number("factor", 1.0, kMaxFactor));
  Extend(spec.max_position * rope.factor, spec);
  return absl::OkStatus();
}

absl::Status ReadScaling(const ConfigReader& config, const ConfigReader& scaling, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  const double max_position = spec.max_position;
  PENSTOCK_ASSIGN_OR_RETURN(rope.type, ReadType(scaling));
  PENSTOCK_ASSIGN_OR_RETURN(rope.theta, scaling.NumberOr("rope_theta", rope.theta, 1.0, kMaxTheta));
  if (rope.type == RopeType::kDefault) return absl::OkStatus();
  if (rope.type == RopeType::kDynamic) return ReadDynamic(scaling, spec);
  if (rope.type == RopeType::kLongrope) return ReadLongrope(config, scaling, spec);
  PENSTOCK_ASSIGN_OR_RETURN(
      rope.original_max_position,
      scaling.NumberOr("original_max_position_embeddings", max_position, 1.0, kMaxRopePosition));
  if (rope.type == RopeType::kYarn && !scaling.Has("factor")) {
    rope.factor = std::max(1.0, max_position / rope.original_max_position);
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(rope.factor, scaling.Number("factor", 1.0, kMaxFactor));
  }
  if (rope.type == RopeType::kLinear) Extend(max_position * rope.factor, spec);
  if (rope.type == RopeType::kYarn) Extend(rope.original_max_position * rope.factor, spec);
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
