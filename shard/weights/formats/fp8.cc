// FP8: values F8_E4M3 [N, K], and a scale per matrix, row or block; a weight is value * scale.
//
//   fp8         NAME_scale_inv per block of `weight_block_size`; of the whole matrix if that is
//               null. Or NAME_scale, as AutoFP8 writes it, of the matrix or of each row.
//   fbgemm_fp8  NAME_scale [N, 1].
//
// Scales that activations have when `activation_scheme` is static are not read.
#include "common/status.h"
#include "shard/weights/formats/fp8_matrix.h"
#include "shard/weights/formats/module_list.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::string_view kValues = "F8_E4M3";
constexpr char kBlock[] = "weight_block_size";

struct Block {
  std::uint64_t rows = 0;  // 0: the whole matrix
  std::uint64_t columns = 0;
};

class Fp8Format final : public StoredFormat {
 public:
  Fp8Format(std::string name, Block block, std::vector<ModuleList> plain)
      : StoredFormat(std::move(name)), block_(block), plain_(std::move(plain)) {}

  absl::StatusOr<QuantizedMatrixPtr> Open(const Checkpoint& checkpoint,
                                          const WeightPart& part) const override {
    const CheckpointTensor* values = checkpoint.Find(part.tensor);
    if (values == nullptr || values->info->type != kValues) return nullptr;
    const std::string module(ModuleOf(part.tensor));
    for (const ModuleList& list : plain_) {
      if (list.Names(module)) {
        return BadTensorType(checkpoint, *values,
                             "F32, BF16 and F16 here: config.json says it is not quantised");
      }
    }
    Fp8Scales scales;
    scales.name = part.tensor + "_scale_inv";
    scales.block_rows = block_.rows;
    scales.block_columns = block_.columns;
    if (const std::string other = part.tensor + "_scale"; checkpoint.Find(other) != nullptr) {
      const auto& shape = checkpoint.Find(other)->info->shape;
      const bool of_rows = !shape.empty() && shape.front() > 1;
      scales = {.name = other, .block_rows = of_rows ? 1u : 0u, .block_columns = 0};
    }
    return OpenFp8(checkpoint, part, scales);
  }

 private:
  const Block block_;
  const std::vector<ModuleList> plain_;
};

absl::StatusOr<std::vector<ModuleList>> ReadPlain(const ConfigReader& config) {
  std::vector<ModuleList> lists;
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    PENSTOCK_ASSIGN_OR_RETURN(ModuleList list,
                              ModuleList::Read(config, key, ModuleList::Rule::kPrefixOrSuffix));
    lists.push_back(std::move(list));
  }
  return lists;
}

// Without the key transformers has blocks of 128.
absl::StatusOr<Block> ReadBlock(const ConfigReader& config) {
  if (config.IsNull(kBlock)) return Block{};
  if (!config.Has(kBlock)) return Block{128, 128};
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<double> block, config.Numbers(kBlock, 1.0, 1 << 20));
  if (block.size() != 2) return config.Bad(kBlock, "two numbers: rows and columns");
  return Block{static_cast<std::uint64_t>(block[0]), static_cast<std::uint64_t>(block[1])};
}

absl::Status RequireOneOf(const ConfigReader& config, const char* key, const char* absent,
                          std::initializer_list<std::string_view> values) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string value, config.StringOr(key, absent));
  std::string names;
  for (const std::string_view name : values) {
    if (value == name) return absl::OkStatus();
    names += (names.empty() ? "" : " or ") + std::string(name);
  }
  return config.Bad(key, names);
}

}  // namespace

absl::StatusOr<StoredFormatPtr> ReadFp8(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(config.RefuseOthers({"quant_method", "fmt", "activation_scheme", kBlock,
                                                "modules_to_not_convert", "ignored_layers",
                                                "scale_fmt", "expert_dtype", "dequantize"}));
  PENSTOCK_RETURN_IF_ERROR(RequireOneOf(config, "fmt", "e4m3", {"e4m3"}));
  PENSTOCK_RETURN_IF_ERROR(
      RequireOneOf(config, "activation_scheme", "dynamic", {"dynamic", "static"}));
  PENSTOCK_RETURN_IF_ERROR(RequireOneOf(config, "expert_dtype", "fp8", {"fp8"}));
  PENSTOCK_ASSIGN_OR_RETURN(const Block block, ReadBlock(config));
  PENSTOCK_ASSIGN_OR_RETURN(auto plain, ReadPlain(config));
  return std::make_shared<Fp8Format>("fp8", block, std::move(plain));
}

absl::StatusOr<StoredFormatPtr> ReadFbgemmFp8(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(
      config.RefuseOthers({"quant_method", "activation_scale_ub", "modules_to_not_convert"}));
  PENSTOCK_ASSIGN_OR_RETURN(auto plain, ReadPlain(config));
  return std::make_shared<Fp8Format>("fbgemm_fp8", Block{}, std::move(plain));
}

}  // namespace penstock::shard
