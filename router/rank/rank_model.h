// Predicts how long the answer to a prompt is: boosted trees over RankFeatures, from the file of
// --rank-model. tools/rank trains them (docs/learned-order.md).
//
// The file is one JSON object of integers:
//
//   format      "penstock rank model"
//   version     1
//   words       arrays of 1 to 3 token ids, at most 4,096
//   trees       at most 4,096 objects with arrays of equal length, one entry for each node:
//                 feature    a number of RankFeatures
//                 threshold  `left` is next if the feature is at most this, else `right`
//                 left, right  a later node, or -1 - n for entry n of `leaf`
//               and `leaf`: 65,536 times what it adds to the base-2 logarithm of the length
//   base        is added to the leaves of all trees
//
// Other members are notes of the training. Immutable and thread-safe. A prediction takes some ten
// microseconds.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/rank/rank_features.h"

namespace penstock::router {

class RankModel {
 public:
  // Errors: InvalidArgument, one line that names the field, its value and its limit.
  static absl::StatusOr<RankModel> Parse(std::string_view json);
  static absl::StatusOr<RankModel> Load(const std::string& path);

  // Expected output tokens, from 1 to 2^20.
  std::uint32_t Predict(const RankInput& input) const;

  const RankFeatures& features() const { return features_; }
  // 65,536 times the base-2 logarithm of the expected output tokens.
  std::int64_t Score(const std::vector<std::int32_t>& features) const;

 private:
  struct Node {
    std::uint32_t feature = 0;
    std::int32_t threshold = 0;
    std::int32_t left = 0;
    std::int32_t right = 0;
  };
  struct Tree {
    std::vector<Node> nodes;
    std::vector<std::int32_t> leaves;  // not empty
  };
  class Reader;

  RankModel(RankFeatures features, std::vector<Tree> trees, std::int64_t base)
      : features_(std::move(features)), trees_(std::move(trees)), base_(base) {}

  RankFeatures features_;
  std::vector<Tree> trees_;
  std::int64_t base_;
};

}  // namespace penstock::router
