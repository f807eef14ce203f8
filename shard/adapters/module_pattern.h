// The ways in which PEFT's adapter_config.json names modules: whole names or their ends, and
// regular expressions. Expressions have the syntax of RE2, so they take linear time; what Python
// knows beyond it (look-around, back references) is refused.
//
// Threading: immutable.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

namespace re2 {
class RE2;
}

namespace penstock::shard {

class ModulePattern {
 public:
  // Matches any module.
  ModulePattern() = default;
  // A whole name must match the expression.
  static absl::StatusOr<ModulePattern> Whole(const std::string& expression);
  // The end of a name, which begins after a dot, must match: the keys of `rank_pattern`.
  static absl::StatusOr<ModulePattern> End(const std::string& expression);
  // The name, or its end after a dot, is one of these.
  static ModulePattern OneOf(std::vector<std::string> names);

  bool Matches(const std::string& module) const;

 private:
  static absl::StatusOr<ModulePattern> Compiled(const std::string& expression);

  std::shared_ptr<const re2::RE2> expression_;
  std::vector<std::string> names_;
  bool any_ = true;
};

}  // namespace penstock::shard
