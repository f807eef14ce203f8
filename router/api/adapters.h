// LoRA adapters by the names that clients send: as `adapter_id`, or in place of the model's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "router/engine.h"

namespace penstock::router {

// The adapter that the name of a model selects; none if it is not the name of a loaded one.
std::optional<std::string> AdapterNamed(const Engine& engine, std::string_view model);

// The model's name in answers: that of the adapter, or the served name.
std::string ShownModel(const Engine& engine, std::string_view model);

// The same for TGI's routes, where any other name of a model is one without effect.
bool SelectsAdapter(const Engine& engine, std::string_view model);

}  // namespace penstock::router
