#include "shard/weights/formats/module_list.h"

#include <re2/re2.h>

#include <algorithm>

#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr std::string_view kExpression = "re:";
constexpr std::int64_t kMostMemory = 1 << 16;  // of a compiled expression
constexpr std::size_t kMostExpressions = 256;

// Lists have hundreds of names and few expressions. A dot of a name is taken for itself.
bool IsName(std::string_view item) {
  return std::all_of(item.begin(), item.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

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
  PENSTOCK_ASSIGN_OR_RETURN(const auto items, config.StringsOr(key));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string& item = items[i];
    if (rule == Rule::kExactOrExpression && item.starts_with(kExpression)) {
      PENSTOCK_RETURN_IF_ERROR(
          list.Add(config, key, i, "(?:" + item.substr(kExpression.size()) + ")"));
    } else if (rule == Rule::kPrefixOrSuffix && !IsName(item)) {
      PENSTOCK_RETURN_IF_ERROR(
          list.Add(config, key, i, "(?:" + item + ")" + (item.ends_with(".") ? "" : "(?:\\.|$)")));
    }
    list.items_.insert(item);
  }
  return list;
}

absl::Status ModuleList::Add(const ConfigReader& config, std::string_view key, std::size_t index,
                             std::string_view expression) {
  if (expressions_.size() == kMostExpressions) {
    return config.Bad(key, "at most " + std::to_string(kMostExpressions) + " expressions");
  }
  auto compiled = Compile("\\A" + std::string(expression));
  if (compiled == nullptr) return config.BadItem(key, index, "an expression in the syntax of RE2");
  expressions_.push_back(std::move(compiled));
  return absl::OkStatus();
}

bool ModuleList::Names(std::string_view module) const {
  if (NamesWithoutExpressions(module)) return true;
  const re2::StringPiece text(module.data(), module.size());
  return std::any_of(expressions_.begin(), expressions_.end(), [&text](const auto& expression) {
    return re2::RE2::PartialMatch(text, *expression);
  });
}

bool ModuleList::NamesWithoutExpressions(std::string_view module) const {
  if (Has(module)) return true;
  if (rule_ == Rule::kExactOrExpression || items_.empty()) return false;
  for (std::size_t i = 1; i < module.size(); ++i) {
    if (Has(module.substr(i))) return true;
    const bool end = module[i] == '.';
    if (end && (Has(module.substr(0, i)) || Has(module.substr(0, i + 1)))) return true;
  }
  return false;
}

std::string_view ModuleOf(std::string_view tensor) {
  constexpr std::string_view kWeight = ".weight";
  if (tensor.ends_with(kWeight)) tensor.remove_suffix(kWeight.size());
  return tensor;
}

}  // namespace penstock::shard
