#include "router/api/adapters.h"

#include <algorithm>

namespace penstock::router {

std::optional<std::string> AdapterNamed(const Engine& engine, std::string_view model) {
  const std::vector<AdapterInfo> adapters = engine.Adapters();
  const auto named = [model](const AdapterInfo& adapter) {
    return adapter.name == model && !adapter.unloading;
  };
  if (std::ranges::none_of(adapters, named)) return std::nullopt;
  return std::string(model);
}

std::string ShownModel(const Engine& engine, std::string_view model) {
  return AdapterNamed(engine, model).value_or(engine.Facts().served_name);
}

bool SelectsAdapter(const Engine& engine, std::string_view model) {
  return engine.Facts().any_adapter || AdapterNamed(engine, model).has_value();
}

}  // namespace penstock::router
