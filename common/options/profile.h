// What a program is when it is started by another name: text-generation-launcher is
// penstock-launcher with that program's defaults and environment names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/options/spec.h"

namespace penstock::options {

// A default in the place of the table's.
struct Preset {
  std::string_view option;
  std::string_view text;
};

// A variable that counts beside PENSTOCK_*, which beats it.
struct EnvironmentRow {
  std::string_view name;    // "MAX_BEST_OF"
  std::string_view option;  // "max-best-of"; empty: it has none, and `note` says why
  // Puts the variable's words into the option's; nothing: they mean nothing there, and the
  // variable is passed over with a warning.
  std::optional<std::string> (*translate)(std::string_view) = nullptr;
  // Without an option: why it changes nothing. With one: what differs. Sentences.
  std::string_view note = {};
  bool silent = false;  // without an option: honoured elsewhere, so nothing is said of it
};

struct Profile {
  std::string_view name;  // of the program: "text-generation-launcher"
  Components component = 0;
  std::span<const Preset> presets;
  std::span<const EnvironmentRow> environment;
};

}  // namespace penstock::options
