#include "shard/backend/transformers/description.h"

#include <absl/strings/str_cat.h>

#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "common/fnv.h"
#include "common/status.h"

namespace penstock::shard::transformers {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24;  // of a vocabulary, and positions
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostDim = 1 << 20;

absl::Status Bad(std::string_view field) {
  return absl::InternalError(absl::StrCat(
      "the Python process describes the model without a usable `", std::string(field), "`"));
}

absl::StatusOr<std::int64_t> Number(const boost::json::value* value, std::string_view field,
                                    std::int64_t low, std::int64_t high) {
  if (value == nullptr || !value->is_int64()) return Bad(field);
  const std::int64_t number = value->as_int64();
  if (number < low || number > high) return Bad(field);
  return number;
}

absl::StatusOr<std::uint32_t> Size(const boost::json::object& description, std::string_view field,
                                   std::int64_t high) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t size,
                            Number(description.if_contains(field), field, 1, high));
  return static_cast<std::uint32_t>(size);
}

absl::StatusOr<std::string> Text(const boost::json::object& description, std::string_view field) {
  const auto* value = description.if_contains(field);
  if (value == nullptr || !value->is_string()) return Bad(field);
  return std::string(value->as_string());
}

absl::Status ReadTokens(const boost::json::object& description, ModelSpec& spec) {
  const auto* tokens = description.if_contains("eos_token_ids");
  if (tokens == nullptr || !tokens->is_array()) return Bad("eos_token_ids");
  for (const boost::json::value& token : tokens->as_array()) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t id,
                              Number(&token, "eos_token_ids", 0, spec.vocabulary - 1));
    spec.eos_token_ids.push_back(static_cast<TokenId>(id));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t bos, Number(description.if_contains("bos_token_id"),
                                                           "bos_token_id", -1, kMostTokens));
  spec.bos_token_id = static_cast<TokenId>(bos);
  return absl::OkStatus();
}

absl::StatusOr<CacheShape> ReadCache(const boost::json::value& value) {
  if (!value.is_array() || value.as_array().size() != 3) return Bad("caches");
  const boost::json::array& sizes = value.as_array();
  CacheShape shape;
  for (const auto& [size, field] :
       {std::pair(&sizes[0], &CacheShape::kv_heads), std::pair(&sizes[1], &CacheShape::key_dim),
        std::pair(&sizes[2], &CacheShape::value_dim)}) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t number, Number(size, "caches", 1, kMostDim));
    shape.*field = static_cast<std::uint32_t>(number);
  }
  return shape;
}

absl::Status ReadCaches(const boost::json::object& description, Program& program) {
  const auto* caches = description.if_contains("caches");
  if (caches == nullptr || !caches->is_array() || caches->as_array().empty()) return Bad("caches");
  if (caches->as_array().size() > kMostLayers) return Bad("caches");
  for (const boost::json::value& cache : caches->as_array()) {
    PENSTOCK_ASSIGN_OR_RETURN(const CacheShape shape, ReadCache(cache));
    program.caches.push_back(shape);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Model> ModelOf(const boost::json::object& description) {
  Model model;
  ModelSpec& spec = model.spec;
  PENSTOCK_ASSIGN_OR_RETURN(spec.model_type, Text(description, "model_type"));
  PENSTOCK_ASSIGN_OR_RETURN(spec.vocabulary, Size(description, "vocabulary", kMostTokens));
  PENSTOCK_ASSIGN_OR_RETURN(spec.max_position, Size(description, "max_position", kMostTokens));
  PENSTOCK_ASSIGN_OR_RETURN(spec.layers, Size(description, "layers", kMostLayers));
  PENSTOCK_RETURN_IF_ERROR(ReadTokens(description, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string dtype, Text(description, "dtype"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string stored, Text(description, "stored_dtype"));
  if (!ParseDType(dtype)) return Bad("dtype");
  model.dtype = *ParseDType(dtype);
  spec.stored_dtype = ParseDType(stored);
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::int64_t parameters,
      Number(description.if_contains("parameters"), "parameters", 0, std::int64_t{1} << 50));
  model.parameters = static_cast<std::uint64_t>(parameters);
  PENSTOCK_RETURN_IF_ERROR(ReadCaches(description, model.program));
  model.program.vocabulary = spec.vocabulary;
  model.program.widths[static_cast<std::size_t>(Buffer::kLogits)] = spec.vocabulary;
  model.fingerprint = absl::StrCat(
      absl::Hex(Fnv1a(boost::json::serialize(description), kFnvStart), absl::kZeroPad16));
  return model;
}

}  // namespace penstock::shard::transformers
