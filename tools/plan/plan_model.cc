#include "tools/plan/plan_model.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "common/bad_option.h"
#include "common/status.h"
#include "shard/model/model_spec.h"
#include "tools/replay/input_file.h"

namespace penstock::plan {
namespace {

constexpr std::uint32_t kNamedContext = 131072;

// What the closed form of step times does not know.
std::string_view Unknown(const shard::ModelSpec& spec) {
  if (spec.expert_intermediate > 0) return "experts";
  if (spec.intermediate == 0 || spec.kv_heads == 0) return "other layers than attention and MLPs";
  if (spec.delta.value_heads > 0) return "recurrent layers";
  return "";
}

absl::StatusOr<PlanModel> FromFolder(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  PENSTOCK_ASSIGN_OR_RETURN(const std::string config, replay::ReadInputFile(path));
  const auto spec = shard::ReadModelSpec(config, "");
  if (!spec.ok()) return WithContext(spec.status(), folder);
  if (const std::string_view unknown = Unknown(*spec); !unknown.empty()) {
    return BadOption("model", folder,
                     "a decoder of attention and gated MLPs; this one has " + std::string(unknown));
  }
  PlanModel model{folder, true};
  model.shape = {double(spec->layers),    double(spec->hidden),   double(spec->heads),
                 double(spec->kv_heads),  double(spec->head_dim), double(spec->intermediate),
                 double(spec->vocabulary)};
  model.tied_head = spec->tied_head.value_or(false);
  model.max_position = spec->max_position;
  return model;
}

}  // namespace

double PlanModel::WeightBytes(bool fp8) const {
  const double words = shape.vocabulary * shape.hidden * (tied_head ? 1 : 2);
  return shape.LinearParameters() * (fp8 ? 1 : 2) + words * 2;
}

double PlanModel::KvBytesPerToken(int ranks) const {
  return 2 * shape.layers * std::max(shape.kv_heads / ranks, 1.0) * shape.head_size * 2;
}

bool PlanModel::Divides(int ranks) const {
  const auto heads = static_cast<std::uint64_t>(shape.query_heads);
  const auto kv = static_cast<std::uint64_t>(shape.kv_heads);
  const auto count = static_cast<std::uint64_t>(ranks);
  return heads % count == 0 && (kv % count == 0 || count % kv == 0);
}

absl::StatusOr<PlanModel> ReadPlanModel(const std::string& text) {
  if (const auto shape = scheduler::MachineModel::ShapeNamed(text)) {
    return PlanModel{text, false, *shape, false, kNamedContext};
  }
  if (!std::filesystem::is_directory(text)) {
    return BadOption("model", text, "a folder with config.json, llama-3-8b or llama-3-70b");
  }
  return FromFolder(text);
}

}  // namespace penstock::plan
