#include "shard/model/model.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <filesystem>

#include "common/fnv.h"
#include "common/model_format.h"
#include "common/status.h"
#include "shard/model/decoder_builder.h"
#include "shard/weights/checkpoint_index.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxConfigBytes = 4 << 20;
constexpr char kConfigFile[] = "config.json";
constexpr char kGenerationFile[] = "generation_config.json";

// Empty text if an optional file is absent.
absl::StatusOr<std::string> ReadConfigFile(const std::string& folder, const char* name,
                                           bool optional) {
  auto text = ReadSmallFile((fs::path(folder) / name).string(), kMaxConfigBytes);
  if (text.ok() || (optional && absl::IsNotFound(text.status()))) {
    return text.ok() ? *text : std::string();
  }
  return WithContext(text.status(), (fs::path(folder) / name).string());
}

// FNV-1a of 64 bits. It finds folders that differ by accident, not forged ones.
class Fingerprint {
 public:
  void Add(std::string_view text) {
    // 0xff is never in UTF-8, so "ab" + "c" differs from "a" + "bc".
    hash_ = Fnv1a("\xff", Fnv1a(text, hash_));
  }
  std::string Hex() const { return absl::StrCat(absl::Hex(hash_, absl::kZeroPad16)); }

 private:
  std::uint64_t hash_ = kFnvStart;
};

std::string FingerprintOf(const std::string& config, const std::string& generation,
                          const Model& model) {
  Fingerprint fingerprint;
  fingerprint.Add(config);
  fingerprint.Add(generation);
  fingerprint.Add(DTypeName(model.dtype));
  if (model.quantization != Quantization::kNone) {
    fingerprint.Add(QuantizationName(model.quantization));
  }
  if (model.kv_type != KvType::kAuto) {
    fingerprint.Add("K/V");
    fingerprint.Add(KvTypeName(model.kv_type));
  }
  if (model.pooling) {
    fingerprint.Add(TaskName(model.spec.task));
    fingerprint.Add(PoolingName(model.pooling->kind));
  }
  for (const CheckpointTensor& tensor : model.checkpoint.tensors()) {
    fingerprint.Add(tensor.info->name);
    fingerprint.Add(tensor.info->type);
    fingerprint.Add(ShapeText(tensor.info->shape));
  }
  return fingerprint.Hex();
}

// The plan has passed CheckTarget.
DType ChooseDType(const ModelOptions& options, const ModelSpec& spec, const WeightPlan& plan,
                  const Checkpoint& checkpoint) {
  if (options.dtype.has_value()) return *options.dtype;
  std::optional<DType> stored = spec.stored_dtype;
  if (!stored.has_value()) {
    // The embedding comes first.
    const CheckpointTensor* embedding = checkpoint.Find(plan.targets.front().parts.front().tensor);
    if (embedding != nullptr) stored = embedding->info->dtype;
  }
  const DType dtype = stored.value_or(DType::kFloat32);
  // CPUs convert float16 one by one; float32 holds its values exactly.
  const bool cpu = options.device.kind == Device::Kind::kCpu;
  return cpu && dtype == DType::kFloat16 ? DType::kFloat32 : dtype;
}

}  // namespace

absl::StatusOr<Model> Model::Open(const ModelOptions& options) {
  std::error_code ec;
  if (!fs::is_directory(options.folder, ec)) {
    return absl::NotFoundError(options.folder + ": is not a folder of a model");
  }
  if (const std::string other = OtherFormat(FilesOf(options.folder)); !other.empty()) {
    return absl::InvalidArgumentError(options.folder + ": " + other);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string config,
                            ReadConfigFile(options.folder, kConfigFile, false));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string generation,
                            ReadConfigFile(options.folder, kGenerationFile, true));
  Model model;
  PENSTOCK_ASSIGN_OR_RETURN(model.checkpoint, Checkpoint::Open(options.folder));
  PENSTOCK_ASSIGN_OR_RETURN(
      model.spec,
      ReadModelSpec(config, generation, {options.task, HasSentenceModules(options.folder)}));
  if (model.spec.task != Task::kGenerate) {
    PENSTOCK_ASSIGN_OR_RETURN(model.pooling,
                              ReadPooling(options.folder, config, options.pooling, model.spec));
  }
  const HasTensor has = [&model](std::string_view name) {
    return model.checkpoint.Find(name) != nullptr;
  };

  // A single rank would use every tensor of the model.
  PENSTOCK_ASSIGN_OR_RETURN(const RankShare whole, MakeRankShare(model.spec, 0, 1));
  absl::Status fits;
  const AcceptTarget accept = [&](const WeightPlan& plan, const WeightTarget& target) {
    fits = CheckTarget(model.checkpoint, plan, target);
    return fits.ok();
  };
  const WeightPlan everything = BuildProgram(model.spec, whole, has, accept).weights;
  PENSTOCK_RETURN_IF_ERROR(fits);
  PENSTOCK_RETURN_IF_ERROR(CheckAllConsumed(model.checkpoint, everything));
  model.parameters = everything.Elements();
  PENSTOCK_ASSIGN_OR_RETURN(model.quantized, CountQuantized(model.checkpoint, everything));
  model.dtype = ChooseDType(options, model.spec, everything, model.checkpoint);
  model.quantization = options.quantization;
  model.kv_type = Simplified(options.kv_type, model.dtype);

  PENSTOCK_ASSIGN_OR_RETURN(model.part, MakeRankShare(model.spec, options.rank, options.world));
  BuiltProgram built = BuildProgram(model.spec, model.part, has);
  model.program = std::move(built.program);
  model.weight_plan = std::move(built.weights);
  model.fingerprint = FingerprintOf(config, generation, model);
  return model;
}

}  // namespace penstock::shard
