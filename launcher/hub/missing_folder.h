// What --model-id names when it is neither a folder nor a model of the hub.
#pragma once

#include <optional>
#include <string>

namespace penstock::hub {

// Why a `model` that does not exist here must be a path and no model id: its form, or its first
// part, which exists here. Names the nearest folder. nullopt: it may be a model id.
std::optional<std::string> MissingFolder(const std::string& model);

}  // namespace penstock::hub
