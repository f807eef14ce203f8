#include "shard/adapters/module_pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

namespace penstock::shard {
namespace {

constexpr std::int64_t kExpressionBytes = 1 << 20;  // of memory

}  // namespace

absl::StatusOr<ModulePattern> ModulePattern::Compiled(const std::string& expression) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kExpressionBytes);
  ModulePattern pattern;
  auto compiled = std::make_shared<const re2::RE2>(expression, options);
  if (!compiled->ok()) return absl::InvalidArgumentError(compiled->error());
  pattern.expression_ = std::move(compiled);
  pattern.any_ = false;
  return pattern;
}

absl::StatusOr<ModulePattern> ModulePattern::Whole(const std::string& expression) {
  return Compiled(expression);
}

absl::StatusOr<ModulePattern> ModulePattern::End(const std::string& expression) {
  return Compiled("(?:.*\\.)?(?:" + expression + ")");
}

ModulePattern ModulePattern::OneOf(std::vector<std::string> names) {
  ModulePattern pattern;
  pattern.names_ = std::move(names);
  pattern.any_ = false;
  return pattern;
}

bool ModulePattern::Matches(const std::string& module) const {
  if (any_) return true;
  if (expression_ != nullptr) return re2::RE2::FullMatch(module, *expression_);
  return std::any_of(names_.begin(), names_.end(), [&module](const std::string& name) {
    return module == name || module.ends_with("." + name);
  });
}

}  // namespace penstock::shard
