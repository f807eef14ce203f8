// GPTQ: MODULE.qweight I32 [K bits / 32, N], low bits first along K, MODULE.qzeros I32 [K / group,
// N bits / 32] likewise along N, MODULE.scales [K / group, N] and MODULE.g_idx I32 [K], the group
// of each column. A value of 3 bits may lie in two words. A weight is (value - zero) * scale. Zero
// points are stored minus 1, unless `checkpoint_format` is gptq_v2.
#include "common/status.h"
#include "shard/weights/formats/column_packed.h"
#include "shard/weights/formats/module_list.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kGptqWordBits = 32;

struct GptqOptions {
  std::uint32_t bits = 4;
  std::uint64_t group = 128;  // 0: a group is a whole row
  bool ordered = false;       // by activation: the groups of columns may be in any order
  bool zeros_less_one = true;
};

// Whether column k is in group k / size: then no index is needed.
bool InOrder(const std::vector<std::uint32_t>& index, std::uint64_t group) {
  for (std::uint64_t k = 0; k < index.size(); ++k) {
    if (index[k] != k / group) return false;
  }
  return true;
}

class GptqFormat final : public StoredFormat {
 public:
  explicit GptqFormat(const GptqOptions& options)
      : StoredFormat("gptq, " + std::to_string(options.bits) + " bits"), options_(options) {}

  absl::StatusOr<QuantizedMatrixPtr> Open(const Checkpoint& checkpoint,
                                          const WeightPart& part) const override {
    const std::string module(ModuleOf(part.tensor));
    const CheckpointTensor* values = checkpoint.Find(module + ".qweight");
    if (values == nullptr) return nullptr;
    PENSTOCK_RETURN_IF_ERROR(RequirePlainMatrix(checkpoint, *values, part));
    const std::uint64_t rows = part.stored_shape[0], columns = part.stored_shape[1];
    const std::uint64_t bits = options_.bits;
    ColumnPackedLayout layout{.rows = rows,
                              .columns = columns,
                              .bits = options_.bits,
                              .group = options_.group == 0 ? columns : options_.group,
                              .zeros_less_one = options_.zeros_less_one};
    const std::uint64_t groups = layout.Groups();
    PENSTOCK_ASSIGN_OR_RETURN(
        layout.values, RequireTensor(checkpoint, module + ".qweight",
                                     {{CeilDivide(columns * bits, kGptqWordBits), rows}}, {"I32"}));
    PENSTOCK_ASSIGN_OR_RETURN(
        layout.zeros, RequireTensor(checkpoint, module + ".qzeros",
                                    {{groups, CeilDivide(rows * bits, kGptqWordBits)}}, {"I32"}));
    PENSTOCK_ASSIGN_OR_RETURN(
        layout.scales,
        RequireTensor(checkpoint, module + ".scales", {{groups, rows}}, {"F16", "BF16", "F32"}));
    std::vector<const CheckpointTensor*> tensors = {layout.values, layout.zeros, layout.scales};
    PENSTOCK_RETURN_IF_ERROR(FindGroups(checkpoint, module + ".g_idx", layout, tensors));
    return std::make_unique<ColumnPackedMatrix>(checkpoint, std::move(layout), std::move(tensors));
  }

 private:
  absl::Status FindGroups(const Checkpoint& checkpoint, const std::string& name,
                          ColumnPackedLayout& layout,
                          std::vector<const CheckpointTensor*>& tensors) const {
    if (!options_.ordered && checkpoint.Find(name) == nullptr) return absl::OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const CheckpointTensor* index,
                              RequireTensor(checkpoint, name, {{layout.columns}}, {"I32"}));
    tensors.push_back(index);
    PENSTOCK_ASSIGN_OR_RETURN(auto groups, ReadGroupIndex(checkpoint, *index, layout.Groups()));
    if (!InOrder(groups, layout.group)) layout.group_of_column = std::move(groups);
    return absl::OkStatus();
  }

  const GptqOptions options_;
};

// What would change answers.
absl::Status RefuseOtherGptqKeys(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(config.RefuseOthers({"quant_method",
                                                "bits",
                                                "group_size",
                                                "desc_act",
                                                "sym",
                                                "checkpoint_format",
                                                "format",
                                                "is_marlin_format",
                                                "pack_dtype",
                                                "dynamic",
                                                "lm_head",
                                                "damp_percent",
                                                "damp_auto_increment",
                                                "static_groups",
                                                "true_sequential",
                                                "act_group_aware",
                                                "mse",
                                                "model_name_or_path",
                                                "model_file_base_name",
                                                "meta",
                                                "dataset",
                                                "tokenizer",
                                                "batch_size",
                                                "pad_token_id",
                                                "block_name_to_quantize",
                                                "module_name_preceding_first_block",
                                                "modules_in_block_to_quantize",
                                                "model_seqlen",
                                                "max_input_length",
                                                "cache_block_outputs",
                                                "use_exllama",
                                                "disable_exllama",
                                                "exllama_config",
                                                "use_cuda_fp16",
                                                "backend"}));
  PENSTOCK_ASSIGN_OR_RETURN(const bool marlin, config.BoolOr("is_marlin_format", false));
  if (marlin) return config.Bad("is_marlin_format", "false");
  PENSTOCK_ASSIGN_OR_RETURN(const std::string words, config.StringOr("pack_dtype", "int32"));
  if (words != "int32") return config.Bad("pack_dtype", "int32");
  PENSTOCK_ASSIGN_OR_RETURN(const auto dynamic, config.Object("dynamic"));
  if (dynamic.has_value() && !dynamic->Keys().empty()) {
    return config.Bad("dynamic", "empty: all modules must have the same bits");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredFormatPtr> ReadGptq(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(RefuseOtherGptqKeys(config));
  GptqOptions options;
  PENSTOCK_ASSIGN_OR_RETURN(options.bits, config.Integer("bits", 2, 8));
  if (options.bits != 8 && options.bits > 4) return config.Bad("bits", "2, 3, 4 or 8");
  PENSTOCK_ASSIGN_OR_RETURN(options.group, ReadGroupSize(config, "group_size"));
  PENSTOCK_ASSIGN_OR_RETURN(options.ordered, config.BoolOr("desc_act", false));
  const char* key = config.Has("checkpoint_format") ? "checkpoint_format" : "format";
  PENSTOCK_ASSIGN_OR_RETURN(const std::string format, config.StringOr(key, "gptq"));
  if (format != "gptq" && format != "gptq_v2") return config.Bad(key, "gptq or gptq_v2");
  options.zeros_less_one = format == "gptq";
  return std::make_shared<GptqFormat>(options);
}

}  // namespace penstock::shard
