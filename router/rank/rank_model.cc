#include "router/rank/rank_model.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "common/json_text.h"
#include "common/status.h"

namespace penstock::router {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "penstock rank model";
constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMostWords = 4096;
constexpr std::size_t kMostTrees = 4096;
constexpr std::size_t kMostNodes = 4096;  // of a tree
constexpr std::size_t kMostBytes = 256 << 20;
constexpr std::int64_t kMostLeaf = 1 << 24;  // 256 in the logarithm
constexpr std::int64_t kInt32 = 2147483647;
constexpr double kMostTokens = 1 << 20;

absl::Status Bad(const std::string& field, const std::string& limit, const std::string& given) {
  return BadValue(field, given, limit);
}

}  // namespace

// Reads the members of one file. Each error names its field.
class RankModel::Reader {
 public:
  absl::StatusOr<RankModel> Read(const json::object& file) {
    PENSTOCK_RETURN_IF_ERROR(CheckFormat(file));
    PENSTOCK_RETURN_IF_ERROR(ReadWords(file));
    RankFeatures features(words_);
    feature_count_ = static_cast<std::int64_t>(features.size());
    PENSTOCK_ASSIGN_OR_RETURN(const json::array* trees, Array(file, "", "trees", kMostTrees));
    for (std::size_t i = 0; i < trees->size(); ++i) {
      const std::string name = "trees[" + std::to_string(i) + "]";
      if (!(*trees)[i].is_object()) return Bad(name, "an object", JsonText((*trees)[i]));
      PENSTOCK_RETURN_IF_ERROR(ReadTree((*trees)[i].get_object(), name + "."));
    }
    const json::value* base = file.if_contains("base");
    if (base == nullptr) return Bad("base", "an integer", "nothing");
    PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t sum, Integer(*base, "base", -kInt32, kInt32));
    return RankModel(std::move(features), std::move(trees_), sum);
  }

 private:
  static absl::Status CheckFormat(const json::object& file) {
    const json::value* format = file.if_contains("format");
    if (format == nullptr || !format->is_string() || format->get_string() != kFormat) {
      return Bad("format", "\"" + std::string(kFormat) + "\"",
                 format == nullptr ? "nothing" : JsonText(*format));
    }
    const json::value* version = file.if_contains("version");
    if (version == nullptr || !version->is_int64() || version->get_int64() != kVersion) {
      return Bad("version", std::to_string(kVersion),
                 version == nullptr ? "nothing" : JsonText(*version));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<std::int64_t> Integer(const json::value& value, const std::string& name,
                                              std::int64_t low, std::int64_t high) {
    if (value.is_int64() && value.get_int64() >= low && value.get_int64() <= high) {
      return value.get_int64();
    }
    return Bad(name, "an integer from " + std::to_string(low) + " to " + std::to_string(high),
               JsonText(value));
  }

  static absl::StatusOr<const json::array*> Array(const json::object& object,
                                                  const std::string& before,
                                                  const std::string& name, std::size_t most) {
    const json::value* value = object.if_contains(name);
    const std::string limit = "an array of at most " + std::to_string(most) + " entries";
    if (value == nullptr) return Bad(before + name, limit, "nothing");
    if (!value->is_array()) return Bad(before + name, limit, JsonText(*value));
    if (value->get_array().size() <= most) return &value->get_array();
    return Bad(before + name, limit, std::to_string(value->get_array().size()) + " entries");
  }

  static absl::StatusOr<std::vector<std::int64_t>> Integers(const json::object& object,
                                                            const std::string& before,
                                                            const std::string& name,
                                                            std::size_t most, std::int64_t low,
                                                            std::int64_t high) {
    PENSTOCK_ASSIGN_OR_RETURN(const json::array* array, Array(object, before, name, most));
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < array->size(); ++i) {
      const std::string entry = before + name + "[" + std::to_string(i) + "]";
      PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t number, Integer((*array)[i], entry, low, high));
      numbers.push_back(number);
    }
    return numbers;
  }

  absl::Status ReadWords(const json::object& file) {
    PENSTOCK_ASSIGN_OR_RETURN(const json::array* words, Array(file, "", "words", kMostWords));
    std::set<std::vector<TokenId>> seen;
    for (std::size_t i = 0; i < words->size(); ++i) {
      const std::string name = "words[" + std::to_string(i) + "]";
      const json::value& value = (*words)[i];
      if (!value.is_array() || value.get_array().empty() ||
          value.get_array().size() > RankFeatures::kLongestWord) {
        return Bad(name, "an array of 1 to 3 token ids", JsonText(value));
      }
      std::vector<TokenId> word;
      for (const json::value& id : value.get_array()) {
        PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t number, Integer(id, name, 0, kInt32));
        word.push_back(static_cast<TokenId>(number));
      }
      if (!seen.insert(word).second) return Bad(name, "unlike the words before", JsonText(value));
      words_.push_back(std::move(word));
    }
    return absl::OkStatus();
  }

  absl::Status ReadTree(const json::object& object, const std::string& name) {
    PENSTOCK_ASSIGN_OR_RETURN(
        const auto leaves, Integers(object, name, "leaf", kMostNodes + 1, -kMostLeaf, kMostLeaf));
    if (leaves.empty()) return Bad(name + "leaf", "an array of at least 1 entry", "0 entries");
    PENSTOCK_ASSIGN_OR_RETURN(const auto features,
                              Integers(object, name, "feature", kMostNodes, 0, feature_count_ - 1));
    const std::size_t count = features.size();
    PENSTOCK_ASSIGN_OR_RETURN(const auto thresholds,
                              Integers(object, name, "threshold", kMostNodes, -kInt32, kInt32));
    const auto last_leaf = -static_cast<std::int64_t>(leaves.size());
    const auto last_node = static_cast<std::int64_t>(count) - 1;
    PENSTOCK_ASSIGN_OR_RETURN(const auto left,
                              Integers(object, name, "left", kMostNodes, last_leaf, last_node));
    PENSTOCK_ASSIGN_OR_RETURN(const auto right,
                              Integers(object, name, "right", kMostNodes, last_leaf, last_node));
    const std::string equal = "an array of " + std::to_string(count) + " entries, as `feature`";
    const auto wrong_size = [&](const char* member, std::size_t size) {
      return Bad(name + member, equal, std::to_string(size) + " entries");
    };
    if (thresholds.size() != count) return wrong_size("threshold", thresholds.size());
    if (left.size() != count) return wrong_size("left", left.size());
    if (right.size() != count) return wrong_size("right", right.size());
    Tree& tree = trees_.emplace_back();
    for (const std::int64_t leaf : leaves) tree.leaves.push_back(static_cast<std::int32_t>(leaf));
    for (std::size_t i = 0; i < count; ++i) {
      // Later nodes only, so that every walk ends.
      for (const std::int64_t child : {left[i], right[i]}) {
        if (child < 0 || child > static_cast<std::int64_t>(i)) continue;
        return Bad(name + (child == left[i] ? "left[" : "right[") + std::to_string(i) + "]",
                   "a leaf or a node after " + std::to_string(i), std::to_string(child));
      }
      tree.nodes.push_back(
          {static_cast<std::uint32_t>(features[i]), static_cast<std::int32_t>(thresholds[i]),
           static_cast<std::int32_t>(left[i]), static_cast<std::int32_t>(right[i])});
    }
    return absl::OkStatus();
  }

  std::vector<std::vector<TokenId>> words_;
  std::vector<Tree> trees_;
  std::int64_t feature_count_ = 0;
};

absl::StatusOr<RankModel> RankModel::Parse(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error);
  if (error || !value.is_object()) {
    return absl::InvalidArgumentError(
        "the file must be one JSON object of at most 256 MiB. Given: " +
        std::to_string(text.size()) + " bytes that are none");
  }
  return Reader().Read(value.get_object());
}

absl::StatusOr<RankModel> RankModel::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return absl::NotFoundError("cannot open `" + path + "`: " + std::strerror(errno));
  const auto bytes = static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0));
  if (bytes > kMostBytes) {
    return absl::InvalidArgumentError(
        path + ": the file must be at most 256 MiB. Given: " + std::to_string(bytes) + " bytes");
  }
  file.seekg(0);
  std::ostringstream text;
  if (bytes > 0) text << file.rdbuf();
  if (!file) return absl::InvalidArgumentError("cannot read `" + path + "`");
  auto model = Parse(text.view());
  if (!model.ok()) return WithContext(model.status(), path);
  return model;
}

std::int64_t RankModel::Score(const std::vector<std::int32_t>& features) const {
  std::int64_t sum = base_;
  for (const Tree& tree : trees_) {
    std::int32_t at = tree.nodes.empty() ? -1 : 0;
    while (at >= 0) {
      const Node& node = tree.nodes[static_cast<std::size_t>(at)];
      at = features[node.feature] <= node.threshold ? node.left : node.right;
    }
    sum += tree.leaves[static_cast<std::size_t>(-1 - at)];
  }
  return sum;
}

std::uint32_t RankModel::Predict(const RankInput& input) const {
  const double tokens = std::exp2(static_cast<double>(Score(features_.Of(input))) / 65536);
  return static_cast<std::uint32_t>(std::clamp(std::round(tokens), 1.0, kMostTokens));
}

}  // namespace penstock::router
