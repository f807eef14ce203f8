#include "shard/model/features.h"

#include <algorithm>

namespace penstock::shard {

std::string_view WhyNot(Feature feature, const Program& program) {
  const bool computed = feature == Feature::kChunkedPrefill || feature == Feature::kPreemption;
  if (program.ComputedElsewhere() && !computed) {
    return feature == Feature::kLora ? "transformers computes the model"
                                     : "transformers keeps the caches";
  }
  if (feature == Feature::kLora && program.head.empty()) return "it gives vectors, not text";
  if (program.states.empty()) return "";
  switch (feature) {
    case Feature::kPaddedLayout:
      return "its recurrent layers keep one state beside the K/V blocks";
    case Feature::kContrastiveSearch:
      return "its recurrent layers keep one state of a text, not one for each candidate";
    default:
      return "";
  }
}

absl::Status CheckFeature(Feature feature, std::string_view model_type, const Program& program) {
  const std::string_view reason = WhyNot(feature, program);
  if (reason.empty()) return absl::OkStatus();
  const auto named = std::find_if(kFeatures.begin(), kFeatures.end(),
                                  [feature](const auto& text) { return text.feature == feature; });
  std::string text(named->without);
  text.append(" with model type ").append(model_type).append(": ").append(reason);
  return absl::UnimplementedError(text);
}

}  // namespace penstock::shard
