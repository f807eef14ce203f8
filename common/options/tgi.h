// The flags and variables of the launcher and the router of text-generation-inference. The profiles
// of both programs and the table of docs/migrate-from-tgi.md are made from them. The rows in
// common/options/rows/ define what a flag does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/options/profile.h"

namespace penstock::options {

struct TgiFlag {
  std::string_view name;                        // "max-best-of"
  std::string_view note = {};                   // sentences about what differs from TGI
  Components components = kLauncher | kRouter;  // the programs that have the flag
};

// The flags of text-generation-launcher in the order of its manual, then others of the router.
std::span<const TgiFlag> TgiFlags();

// The variables of the flags of the program, then those without a flag.
const std::vector<EnvironmentRow>& TgiVariables(Components component);
std::span<const EnvironmentRow> TgiOtherVariables();  // those without a flag

// The profile of a program name; null if the name has none.
const Profile* FindTgiProfile(std::string_view program);

// The flag table of docs/migrate-from-tgi.md.
std::string TgiMarkdownTable();

}  // namespace penstock::options
