// Element types and their names in options, in config.json (`torch_dtype`, `dtype`) and in
// safetensors headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {

enum class DType : std::uint8_t { kFloat32, kBFloat16, kFloat16 };

struct DTypeAlias {
  std::string_view name;
  DType dtype;
};

// The canonical name of each type comes first.
inline constexpr std::array<DTypeAlias, 10> kDTypeAliases = {{
    {"float32", DType::kFloat32},
    {"bfloat16", DType::kBFloat16},
    {"float16", DType::kFloat16},
    {"fp32", DType::kFloat32},
    {"f32", DType::kFloat32},
    {"float", DType::kFloat32},
    {"bf16", DType::kBFloat16},
    {"fp16", DType::kFloat16},
    {"f16", DType::kFloat16},
    {"half", DType::kFloat16},
}};

// Ignores case and a leading "torch.". nullopt if the name is unknown.
inline std::optional<DType> ParseDType(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (name.starts_with("torch.")) name.erase(0, 6);
  for (const DTypeAlias& alias : kDTypeAliases) {
    if (alias.name == name) return alias.dtype;
  }
  return std::nullopt;
}

constexpr std::string_view DTypeName(DType dtype) {
  return kDTypeAliases[static_cast<std::size_t>(dtype)].name;
}

constexpr std::size_t DTypeBytes(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

}  // namespace penstock
