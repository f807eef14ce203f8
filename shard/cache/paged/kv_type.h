// Types of K and V in the cache (--kv-cache-dtype). The type changes outputs and memory, so all
// ranks of a group must have the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/dtype.h"

namespace penstock::shard {

enum class KvType : std::uint8_t {
  kAuto,  // as the model computes
  kFloat32,
  kBFloat16,
  kInt8,  // with a float32 scale per position and head, for K and for V
  kFp8,   // e4m3, without a scale
};

inline constexpr std::array<std::string_view, 5> kKvTypeNames = {"auto", "float32", "bfloat16",
                                                                 "int8", "fp8_e4m3fn"};

constexpr std::string_view KvTypeName(KvType type) {
  return kKvTypeNames[static_cast<std::size_t>(type)];
}

// nullopt for an unknown name.
constexpr std::optional<KvType> ParseKvType(std::string_view name) {
  for (std::size_t i = 0; i < kKvTypeNames.size(); ++i) {
    if (kKvTypeNames[i] == name) return static_cast<KvType>(i);
  }
  return std::nullopt;
}

// kAuto if the type is that of the model.
constexpr KvType Simplified(KvType type, DType model) {
  const bool same = (type == KvType::kFloat32 && model == DType::kFloat32) ||
                    (type == KvType::kBFloat16 && model == DType::kBFloat16);
  return same ? KvType::kAuto : type;
}

// Bytes of the K, or V, of one position and head in a model of type `model`.
constexpr std::uint64_t KvHeadBytes(KvType type, DType model, std::uint64_t head_dim) {
  switch (type) {
    case KvType::kAuto:
      break;
    case KvType::kFloat32:
      return head_dim * 4;
    case KvType::kBFloat16:
      return head_dim * 2;
    case KvType::kInt8:
      return head_dim + sizeof(float);
    case KvType::kFp8:
      return head_dim;
  }
  return head_dim * DTypeBytes(model);
}

}  // namespace penstock::shard
