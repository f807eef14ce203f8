// Which modules a list in config.json names: `modules_to_not_convert`, `ignore`, `targets`.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shard/weights/config_reader.h"

namespace re2 {
class RE2;
}

namespace penstock::shard {

class ModuleList {
 public:
  enum class Rule : std::uint8_t {
    // transformers: an expression for the name or its beginning up to a dot, or the name's end.
    kPrefixOrSuffix,
    // compressed-tensors: the whole name or, after "re:", an expression for its beginning.
    kExactOrExpression,
  };

  // The list at `key`; empty if there is none. An expression that RE2 does not read is an error,
  // and so are very many.
  static absl::StatusOr<ModuleList> Read(const ConfigReader& config, std::string_view key,
                                         Rule rule);

  // Whether the list names a module such as "model.layers.0.self_attn.q_proj".
  bool Names(std::string_view module) const;
  bool Has(std::string_view item) const { return items_.contains(item); }  // as it stands there

 private:
  bool NamesWithoutExpressions(std::string_view module) const;
  absl::Status Add(const ConfigReader& config, std::string_view key, std::size_t index,
                   std::string_view expression);

  Rule rule_ = Rule::kPrefixOrSuffix;
  std::set<std::string, std::less<>> items_;
  std::vector<std::shared_ptr<const re2::RE2>> expressions_;
};

// "model.layers.0.mlp.down_proj" of "model.layers.0.mlp.down_proj.weight".
std::string_view ModuleOf(std::string_view tensor);

}  // namespace penstock::shard
