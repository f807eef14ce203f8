#include "shard/executor/head_layers.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::shard {
namespace {

// A matrix, or a vector if `columns` is 0.
absl::StatusOr<std::vector<float>> ReadTensor(const Checkpoint& checkpoint, const std::string& name,
                                              std::uint64_t rows, std::uint64_t columns) {
  const bool vector = columns == 0;
  const std::uint64_t width = vector ? 1 : columns;
  WeightTarget target{name, rows, width, vector, {}};
  std::vector<std::uint64_t> shape = {rows};
  if (!vector) shape.push_back(columns);
  target.parts.push_back({name, shape, {0, rows}, {0, width}, 0});
  WeightPlan plan;
  plan.targets.push_back(std::move(target));
  PENSTOCK_RETURN_IF_ERROR(CheckParts(checkpoint, plan));
  const auto go_on = [](std::string_view, std::uint64_t, std::uint64_t) { return true; };
  PENSTOCK_ASSIGN_OR_RETURN(const LoadedWeights weights,
                            LoadWeights(checkpoint, plan, DType::kFloat32, go_on));
  const auto* values = static_cast<const float*>(weights.views.front().data);
  return std::vector<float>(values, values + rows * width);
}

absl::StatusOr<std::vector<float>> ReadVectorIfStored(const Checkpoint& checkpoint,
                                                      const std::string& name, std::uint64_t size) {
  if (checkpoint.Find(name) == nullptr) return std::vector<float>();
  return ReadTensor(checkpoint, name, size, 0);
}

double Activated(HeadActivation activation, double x) {
  switch (activation) {
    case HeadActivation::kNone:
      return x;
    case HeadActivation::kTanh:
      return std::tanh(x);
    case HeadActivation::kRelu:
      return std::max(x, 0.0);
    case HeadActivation::kGelu:
      return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  }
  return x;
}

void LayerNorm(const std::vector<float>& weight, const std::vector<float>& bias, float eps,
               std::vector<float>& row) {
  const auto size = static_cast<double>(row.size());
  double mean = 0, variance = 0;
  for (const float x : row) mean += x / size;
  for (const float x : row) variance += (x - mean) * (x - mean) / size;
  const double scale = 1.0 / std::sqrt(variance + eps);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double shift = bias.empty() ? 0.0 : bias[i];
    row[i] = static_cast<float>((row[i] - mean) * scale * weight[i] + shift);
  }
}

}  // namespace

absl::StatusOr<HeadLayers> HeadLayers::Load(const Model& model, const std::string& folder) {
  HeadLayers head;
  head.eps_ = model.spec.norm_eps;
  for (const HeadLayer& layer : model.pooling->layers) {
    if (layer.folder.empty()) {
      PENSTOCK_ASSIGN_OR_RETURN(Layer loaded, LoadLayer(model.checkpoint, layer));
      head.layers_.push_back(std::move(loaded));
      continue;
    }
    const std::string own = (std::filesystem::path(folder) / layer.folder).string();
    PENSTOCK_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(own));
    PENSTOCK_ASSIGN_OR_RETURN(Layer loaded, LoadLayer(checkpoint, layer));
    head.layers_.push_back(std::move(loaded));
  }
  return head;
}

absl::StatusOr<HeadLayers::Layer> HeadLayers::LoadLayer(const Checkpoint& checkpoint,
                                                        const HeadLayer& layer) {
  Layer loaded;
  loaded.layer = layer;
  PENSTOCK_ASSIGN_OR_RETURN(
      loaded.weight, ReadTensor(checkpoint, layer.name + ".weight", layer.outputs, layer.inputs));
  PENSTOCK_ASSIGN_OR_RETURN(loaded.bias,
                            ReadVectorIfStored(checkpoint, layer.name + ".bias", layer.outputs));
  if (layer.norm.empty()) return loaded;
  PENSTOCK_ASSIGN_OR_RETURN(loaded.norm_weight,
                            ReadTensor(checkpoint, layer.norm + ".weight", layer.outputs, 0));
  PENSTOCK_ASSIGN_OR_RETURN(loaded.norm_bias,
                            ReadVectorIfStored(checkpoint, layer.norm + ".bias", layer.outputs));
  return loaded;
}

void HeadLayers::Run(std::vector<float>& row) const {
  for (const Layer& step : layers_) {
    std::vector<float> out(step.layer.outputs);
    for (std::size_t i = 0; i < out.size(); ++i) {
      double sum = step.bias.empty() ? 0.0 : step.bias[i];
      const float* weight = step.weight.data() + i * row.size();
      for (std::size_t k = 0; k < row.size(); ++k) sum += double{row[k]} * weight[k];
      out[i] = static_cast<float>(Activated(step.layer.activation, sum));
    }
    row = std::move(out);
    if (!step.norm_weight.empty()) LayerNorm(step.norm_weight, step.norm_bias, eps_, row);
  }
}

}  // namespace penstock::shard
