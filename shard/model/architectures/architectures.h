// The model types that Penstock knows. A new type is a file of this folder and a line of
// model_types.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shard/model/model_spec.h"

namespace penstock::shard {

struct ModelType {
  std::string_view name;  // `model_type` of config.json
  ReadArchitecture* read;
  std::string_view models;  // some that have it, for documents
};

// Those that generate text, in the order of their names.
std::span<const ModelType> ModelTypes();

// Null if Penstock does not know the type.
ReadArchitecture* FindArchitecture(std::string_view model_type);

// What to give instead of an unknown type: "one of gemma, …; the nearest is llama".
std::string KnownModelTypes(std::string_view unknown);

}  // namespace penstock::shard
