// The layers after the pooling of a text, in float32 on the host: a row per text is little work, so
// rank 0 alone computes them, one text after the other.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "shard/model/model.h"

namespace penstock::shard {

class HeadLayers {
 public:
  // Reads the layers of model.pooling. Errors name file, tensor and shapes.
  static absl::StatusOr<HeadLayers> Load(const Model& model, const std::string& folder);

  // Replaces the pooled row by the result of the last layer.
  void Run(std::vector<float>& row) const;

 private:
  struct Layer {
    HeadLayer layer;
    std::vector<float> weight;       // [outputs, inputs]
    std::vector<float> bias;         // empty: none
    std::vector<float> norm_weight;  // empty: none
    std::vector<float> norm_bias;    // empty: zeros
  };
  static absl::StatusOr<Layer> LoadLayer(const Checkpoint& checkpoint, const HeadLayer& layer);

  std::vector<Layer> layers_;
  float eps_ = 0.0f;  // of the norms
};

}  // namespace penstock::shard
