#include "shard/adapters/lora_adapter.h"

#include <absl/status/status.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "shard/adapters/adapter_config.h"
#include "shard/adapters/linear_modules.h"
#include "shard/weights/checkpoint_index.h"
#include "shard/weights/convert.h"
#include "shard/weights/safetensors_file.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

constexpr char kConfigFile[] = "adapter_config.json";
constexpr char kWeightsFile[] = "adapter_model.safetensors";
constexpr std::uint64_t kMostConfigBytes = 4 << 20;
constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kDown = ".lora_A.weight";
constexpr std::string_view kUp = ".lora_B.weight";

// The two matrices of a module.
struct Pair {
  const TensorInfo* down = nullptr;
  const TensorInfo* up = nullptr;
};
using Pairs = std::map<std::string, Pair>;  // by module

class Reader {
 public:
  Reader(const AdapterConfig& config, const SafetensorsFile& file, const LinearModules& modules,
         const WeightPlan& plan)
      : config_(config), file_(file), modules_(modules), plan_(plan) {}

  absl::StatusOr<LoraAdapter> Read() {
    PENSTOCK_ASSIGN_OR_RETURN(const Pairs pairs, FindPairs());
    LoraAdapter adapter;
    for (const auto& [module, pair] : pairs) {
      PENSTOCK_RETURN_IF_ERROR(ReadModule(module, pair));
      adapter.rank = std::max(adapter.rank, config_.RankOf(module));
    }
    for (auto& [target, delta] : deltas_) {
      if (delta.Ranks() > kMostTargetRanks) {
        return Bad(plan_.targets[static_cast<std::size_t>(target)].name + " has modules of rank " +
                   std::to_string(delta.Ranks()) + " together; they may have at most " +
                   std::to_string(kMostTargetRanks));
      }
      adapter.deltas.push_back(std::move(delta));
    }
    adapter.bfloat16 = std::ranges::all_of(
        file_.tensors(), [](const TensorInfo& tensor) { return tensor.dtype == DType::kBFloat16; });
    return adapter;
  }

 private:
  static absl::Status Bad(const std::string& what) {
    return absl::InvalidArgumentError(std::string(kWeightsFile) + ": " + what);
  }

  absl::StatusOr<Pairs> FindPairs() const {
    Pairs pairs;
    for (const TensorInfo& tensor : file_.tensors()) {
      std::string_view name = tensor.name;
      const bool down = name.ends_with(kDown);
      if (!name.starts_with(kPrefix) || (!down && !name.ends_with(kUp))) {
        return Bad("tensor " + tensor.name + " is not a lora_A or lora_B of a linear module");
      }
      name.remove_prefix(kPrefix.size());
      name.remove_suffix(kDown.size());
      Pair& pair = pairs[std::string(name)];
      (down ? pair.down : pair.up) = &tensor;
    }
    if (pairs.empty()) return Bad("has no tensors");
    for (const auto& [module, pair] : pairs) {
      if (pair.down == nullptr) return Bad("lora_A of " + module + " is missing");
      if (pair.up == nullptr) return Bad("lora_B of " + module + " is missing");
    }
    return pairs;
  }

  absl::Status CheckTensor(const TensorInfo& tensor, std::uint64_t rows, std::uint64_t columns,
                           const std::string& why) const {
    if (!tensor.dtype.has_value()) {
      return Bad("tensor " + tensor.name + " has type " + std::string(tensor.type) +
                 "; must be F32, F16 or BF16");
    }
    const std::vector<std::uint64_t> wanted = {rows, columns};
    if (tensor.shape == wanted) return absl::OkStatus();
    return Bad("tensor " + tensor.name + " has shape " + ShapeText(tensor.shape) + "; must be " +
               ShapeText(wanted) + why);
  }

  absl::StatusOr<std::vector<float>> ReadTensor(const TensorInfo& tensor) const {
    std::vector<char> bytes(tensor.bytes);
    PENSTOCK_RETURN_IF_ERROR(file_.Read(tensor.offset, tensor.bytes, bytes.data()));
    std::vector<float> values(tensor.bytes / DTypeBytes(*tensor.dtype));
    ConvertElements(bytes.data(), *tensor.dtype, values.data(), DType::kFloat32, values.size());
    return values;
  }

  absl::Status ReadModule(const std::string& name, const Pair& pair) {
    if (!config_.targets.Matches(name)) {
      return Bad("has matrices of " + name + ", which `target_modules` does not name");
    }
    auto found = modules_.Find(name);
    if (!found.ok()) return WithContext(found.status(), kWeightsFile);
    const LinearModules::Module& module = **found;
    const std::uint32_t rank = config_.RankOf(name);
    const std::string why = ": rank " + std::to_string(rank) + " for a base matrix of " +
                            ShapeText({module.rows, module.columns});
    PENSTOCK_RETURN_IF_ERROR(CheckTensor(*pair.down, rank, module.columns, why));
    PENSTOCK_RETURN_IF_ERROR(CheckTensor(*pair.up, module.rows, rank, why));
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<float> down, ReadTensor(*pair.down));
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<float> up, ReadTensor(*pair.up));
    LoraModule* current = nullptr;
    WeightIndex target = kNoWeight;
    for (const LinearModules::Module::Place& place : module.places) {
      if (place.target != target) {
        target = place.target;
        current = &Begin(target, name, module, *place.part, down);
      }
      AddRows(*place.part, up, *current);
    }
    return absl::OkStatus();
  }

  // The parts of one target and one stored matrix have the same columns.
  LoraModule& Begin(WeightIndex target, const std::string& name,
                    const LinearModules::Module& module, const WeightPart& part,
                    const std::vector<float>& down) {
    LoraDelta& delta = deltas_[target];
    delta.target = target;
    delta.columns = part.columns.count;
    LoraModule& added = delta.modules.emplace_back();
    added.rank = config_.RankOf(name);
    added.scale = config_.ScaleOf(name);
    for (std::uint32_t i = 0; i < added.rank; ++i) {
      const auto row =
          down.begin() + static_cast<std::ptrdiff_t>(i * module.columns + part.columns.first);
      added.down.insert(added.down.end(), row, row + static_cast<std::ptrdiff_t>(delta.columns));
    }
    return added;
  }

  static void AddRows(const WeightPart& part, const std::vector<float>& up, LoraModule& module) {
    for (std::uint64_t i = 0; i < part.rows.count; ++i) {
      const std::uint64_t stored = part.rows.first + i * part.row_step;
      module.rows.push_back(static_cast<std::uint32_t>(part.target_row + i));
      const auto row = up.begin() + static_cast<std::ptrdiff_t>(stored * module.rank);
      module.up.insert(module.up.end(), row, row + module.rank);
    }
  }

  const AdapterConfig& config_;
  const SafetensorsFile& file_;
  const LinearModules& modules_;
  const WeightPlan& plan_;
  std::map<WeightIndex, LoraDelta> deltas_;
};

absl::StatusOr<LoraAdapter> ReadFolder(const std::string& folder, const Program& program,
                                       const WeightPlan& plan) {
  std::error_code ec;
  if (!fs::is_directory(folder, ec)) return absl::NotFoundError("is not a folder of an adapter");
  const fs::path path(folder);
  auto text = ReadSmallFile((path / kConfigFile).string(), kMostConfigBytes);
  if (!text.ok()) return WithContext(text.status(), kConfigFile);
  PENSTOCK_ASSIGN_OR_RETURN(const AdapterConfig config, ParseAdapterConfig(*text));
  if (!fs::exists(path / kWeightsFile, ec)) {
    return absl::NotFoundError(std::string(kWeightsFile) + " is missing" +
                               (fs::exists(path / "adapter_model.bin", ec)
                                    ? "; adapter_model.bin is not loaded: save the adapter as "
                                      "safetensors"
                                    : ""));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open((path / kWeightsFile).string()));
  const LinearModules modules(program, plan);
  return Reader(config, *file, modules, plan).Read();
}

}  // namespace

std::uint32_t LoraDelta::Ranks() const {
  std::uint32_t ranks = 0;
  for (const LoraModule& module : modules) ranks += module.rank;
  return ranks;
}

std::uint64_t LoraAdapter::Elements() const {
  std::uint64_t elements = 0;
  for (const LoraDelta& delta : deltas) {
    for (const LoraModule& module : delta.modules)
      elements += module.down.size() + module.up.size();
  }
  return elements;
}

absl::StatusOr<LoraAdapter> ReadLoraAdapter(const std::string& folder, const Program& program,
                                            const WeightPlan& plan) {
  auto adapter = ReadFolder(folder, program, plan);
  if (!adapter.ok()) return WithContext(adapter.status(), folder);
  return adapter;
}

}  // namespace penstock::shard
