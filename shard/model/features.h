// What a model of some types cannot have, and why. The refusals of a shard and docs/models.md ask
// here, so they agree.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "shard/model/program.h"

namespace penstock::shard {

enum class Feature : std::uint8_t {
  kPrefixCache,
  kChunkedPrefill,
  kPreemption,
  kPaddedLayout,
  kSpeculation,
  kContrastiveSearch,
  kLora,
};

struct FeatureText {
  Feature feature;
  std::string_view name;     // for documents
  std::string_view without;  // what must hold without it, by the name of the option
};

inline constexpr std::array kFeatures = {
    FeatureText{Feature::kPrefixCache, "prefix cache", "prefixes are not cached"},
    FeatureText{Feature::kChunkedPrefill, "chunked prefill", "prompts are computed in one step"},
    FeatureText{Feature::kPreemption, "preemption", "no sequence gives up its blocks"},
    FeatureText{Feature::kPaddedLayout, "padded KV layout", "`kv-layout` must be paged"},
    FeatureText{Feature::kSpeculation, "speculation", "`speculate` must be 0"},
    FeatureText{Feature::kContrastiveSearch, "contrastive search",
                "`contrastive-search` must be off"},
    FeatureText{Feature::kLora, "LoRA", "`lora` must be unset"},
};

// Why the model has not this feature: "its recurrent layers keep …". Empty if it has.
std::string_view WhyNot(Feature feature, const Program& program);

// Unimplemented if the model has not the feature: "`speculate` must be 0 with model type X: …".
absl::Status CheckFeature(Feature feature, std::string_view model_type, const Program& program);

}  // namespace penstock::shard
