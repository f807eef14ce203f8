#include "shard/model/architectures/architectures.h"

#include <algorithm>

#include "common/edit_distance.h"
#include "shard/model/architectures/model_types.h"

namespace penstock::shard {

// Each reader is in the file of its architecture.
#define PENSTOCK_DECLARE(name, read, models) ReadArchitecture read;
PENSTOCK_MODEL_TYPES(PENSTOCK_DECLARE)
PENSTOCK_ENCODER_TYPES(PENSTOCK_DECLARE)
#undef PENSTOCK_DECLARE

namespace {

#define PENSTOCK_ROW(name, read, models) {name, read, models},
constexpr ModelType kTypes[] = {PENSTOCK_MODEL_TYPES(PENSTOCK_ROW)};
constexpr ModelType kEncoders[] = {PENSTOCK_ENCODER_TYPES(PENSTOCK_ROW)};
#undef PENSTOCK_ROW

struct Alias {
  std::string_view name;
  std::string_view type;
};

#define PENSTOCK_ALIAS(name, type) {name, type},
constexpr Alias kAliases[] = {PENSTOCK_MODEL_ALIASES(PENSTOCK_ALIAS)};
#undef PENSTOCK_ALIAS

// A name in a config.json may have any length. Only its first bytes are compared.
constexpr std::size_t kMostCompared = 64;

}  // namespace

std::span<const ModelType> ModelTypes() { return kTypes; }

ReadArchitecture* FindArchitecture(std::string_view model_type) {
  for (const Alias& alias : kAliases) {
    if (alias.name == model_type) model_type = alias.type;
  }
  for (const ModelType& type : kTypes) {
    if (type.name == model_type) return type.read;
  }
  for (const ModelType& type : kEncoders) {
    if (type.name == model_type) return type.read;
  }
  return nullptr;
}

std::string KnownModelTypes(std::string_view unknown) {
  std::string text;
  for (const ModelType& type : kTypes) {
    text.append(text.empty() ? "one of " : ", ").append(type.name);
  }
  text.append(" (--engine transformers runs others)");
  if (unknown.empty()) return text;
  const auto distance = [&unknown](const ModelType& type) {
    return EditDistance(unknown.substr(0, kMostCompared), type.name);
  };
  const auto nearest = std::min_element(
      std::begin(kTypes), std::end(kTypes),
      [&](const ModelType& a, const ModelType& b) { return distance(a) < distance(b); });
  const bool near = 2 * distance(*nearest) <= unknown.size();
  return near ? text.append("; the nearest is ").append(nearest->name) : text;
}

}  // namespace penstock::shard
