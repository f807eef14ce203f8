// A profile changes the defaults and environment names of a program that is started by another
// name. For example, text-generation-launcher is penstock-launcher with a profile.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/options/spec.h"

namespace penstock::options {

// A default that replaces that of the table.
struct Preset {
  std::string_view option;
  std::string_view text;
};

// An environment variable that sets an option. The option's PENSTOCK_* variable wins.
struct EnvironmentRow {
  std::string_view name;    // "MAX_BEST_OF"
  std::string_view option;  // "max-best-of"; empty: no option, and `note` says why
  // Translates the value of the variable to that of the option. nullopt: the variable is ignored
  // with a warning.
  std::optional<std::string> (*translate)(std::string_view) = nullptr;
  // Sentences. Without an option: why the variable has no effect. With one: what differs.
  std::string_view note = {};
  bool silent = false;  // no warning, since another part of the program reads the variable
};

struct Profile {
  std::string_view name;  // "text-generation-launcher"
  Components component = 0;
  std::span<const Preset> presets;
  std::span<const EnvironmentRow> environment;
};

}  // namespace penstock::options
