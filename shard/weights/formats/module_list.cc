#include "shard/weights/formats/module_list.h"

#include <re2/re2.h>

#include <algorithm>

#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr std::string_view kExpression = "re:";
constexpr std::int64_t kMostMemory = 1 << 20;  // of a compiled expression

std::shared_ptr<const re2::RE2> Compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  auto expression = std::make_shared<const re2::RE2>(pattern, options);
  return expression->ok() ? expression : nullptr;
}

}  // namespace

absl::StatusOr<ModuleList> ModuleList::Read(const ConfigReader& config, std::string_view key,
                                            Rule rule) {
  ModuleList list;
  list.rule_ = rule;
  PENSTOCK_ASSIGN_OR_RETURN(list.items_, config.StringsOr(key));
  for (std::size_t i = 0; i < list.items_.size(); ++i) {
    const std::string& item = list.items_[i];
    if (rule == Rule::kExactOrExpression) {
      if (!item.starts_with(kExpression)) continue;
      PENSTOCK_RETURN_IF_ERROR(
          list.Add(config, key, i, "(?:" + item.substr(kExpression.size()) + ")"));
      continue;
    }
    const std::string end = item.ends_with(".") ? "" : "(?:\\.|$)";
    PENSTOCK_RETURN_IF_ERROR(list.Add(config, key, i, "(?:" + item + ")" + end));
  }
  return list;
}

absl::Status ModuleList::Add(const ConfigReader& config, std::string_view key, std::size_t index,
                             std::string_view expression) {
  auto compiled = Compile("\\A" + std::string(expression));
  if (compiled == nullptr) return config.BadItem(key, index, "an expression in the syntax of RE2");
  expressions_.push_back(std::move(compiled));
  return absl::OkStatus();
}

bool ModuleList::Names(std::string_view module) const {
  const re2::StringPiece text(module.data(), module.size());
  const auto matches = [&text](const auto& expression) {
    return re2::RE2::PartialMatch(text, *expression);
  };
  if (std::any_of(expressions_.begin(), expressions_.end(), matches)) return true;
  return std::any_of(items_.begin(), items_.end(), [this, module](const std::string& item) {
    return rule_ == Rule::kPrefixOrSuffix ? module.ends_with(item) : module == item;
  });
}

bool ModuleList::Has(std::string_view item) const {
  return std::find(items_.begin(), items_.end(), item) != items_.end();
}

std::string_view ModuleOf(std::string_view tensor) {
  constexpr std::string_view kWeight = ".weight";
  if (tensor.ends_with(kWeight)) tensor.remove_suffix(kWeight.size());
  return tensor;
}

}  // namespace penstock::shard
