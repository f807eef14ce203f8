// The table of model families. A new family is a file of this folder and a row of the table.
#pragma once

#include <string>
#include <string_view>

#include "shard/model/model_spec.h"

namespace penstock::shard {

// The family with this `model_type` of config.json; null if Penstock does not know it.
ReadArchitecture* FindArchitecture(std::string_view model_type);

// "llama, mistral, …".
std::string ArchitectureNames();

}  // namespace penstock::shard
