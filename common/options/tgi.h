// text-generation-inference's names: the flags and variables of its launcher and router, and what
// each means here. The profiles of both programs and the table of docs/migrate-from-tgi.md follow
// from it. What a flag does is its row's matter (common/options/rows/).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/options/profile.h"

namespace penstock::options {

struct TgiFlag {
  std::string_view name;                        // "max-best-of"
  std::string_view note = {};                   // what differs under the same name; sentences
  Components components = kLauncher | kRouter;  // whose flag it is
};

// text-generation-launcher's, in the order of its manual, then text-generation-router's others.
std::span<const TgiFlag> TgiFlags();

// The variable of each flag of the program, then those that have no flag.
const std::vector<EnvironmentRow>& TgiVariables(Components component);
std::span<const EnvironmentRow> TgiOtherVariables();  // the latter alone

// Of a program that was started by that name; null for any other name.
const Profile* FindTgiProfile(std::string_view program);

// The flag table of docs/migrate-from-tgi.md.
std::string TgiMarkdownTable();

}  // namespace penstock::options
