// AWQ in the order of its gemm kernels: MODULE.qweight I32 [K, N / 8] with eight rows of a column
// in each word, MODULE.qzeros I32 [K / group, N / 8] likewise and MODULE.scales [K / group, N]. A
// weight is (value - zero) * scale.
#include "common/status.h"
#include "shard/weights/formats/column_packed.h"
#include "shard/weights/formats/module_list.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kRowsOfWord = 8;

class AwqFormat final : public StoredFormat {
 public:
  AwqFormat(std::uint64_t group, ModuleList plain)
      : StoredFormat("awq, 4 bits"), group_(group), plain_(std::move(plain)) {}

  absl::StatusOr<QuantizedMatrixPtr> Open(const Checkpoint& checkpoint,
                                          const WeightPart& part) const override {
    const std::string module(ModuleOf(part.tensor));
    const CheckpointTensor* values = checkpoint.Find(module + ".qweight");
    if (values == nullptr) return nullptr;
    if (plain_.Names(module)) {
      return BadTensorType(checkpoint, *values,
                           "F32, BF16 and F16 here: config.json says it is "
                           "not quantised");
    }
    PENSTOCK_RETURN_IF_ERROR(RequirePlainMatrix(checkpoint, *values, part));
    const std::uint64_t rows = part.stored_shape[0], columns = part.stored_shape[1];
    if (rows % kRowsOfWord != 0) {
      return absl::InvalidArgumentError(TensorText(checkpoint, *values) +
                                        " holds eight outputs in a word; config.json asks for " +
                                        std::to_string(rows) + " outputs");
    }
    const std::uint64_t across = rows / kRowsOfWord;
    ColumnPackedLayout layout{.rows = rows,
                              .columns = columns,
                              .group = group_ == 0 ? columns : group_,
                              .along_rows = true};
    PENSTOCK_ASSIGN_OR_RETURN(layout.values, RequireTensor(checkpoint, module + ".qweight",
                                                           {{columns, across}}, {"I32"}));
    PENSTOCK_ASSIGN_OR_RETURN(layout.zeros, RequireTensor(checkpoint, module + ".qzeros",
                                                          {{layout.Groups(), across}}, {"I32"}));
    PENSTOCK_ASSIGN_OR_RETURN(
        layout.scales, RequireTensor(checkpoint, module + ".scales", {{layout.Groups(), rows}},
                                     {"F16", "BF16", "F32"}));
    std::vector<const CheckpointTensor*> tensors = {layout.values, layout.zeros, layout.scales};
    return std::make_unique<ColumnPackedMatrix>(checkpoint, std::move(layout), std::move(tensors));
  }

 private:
  const std::uint64_t group_;  // 0: a group is a whole row
  const ModuleList plain_;
};

}  // namespace

absl::StatusOr<StoredFormatPtr> ReadAwq(const ConfigReader& config) {
  // Transformers 5 also writes the keys of GPTQ, which say how the checkpoint was made.
  PENSTOCK_RETURN_IF_ERROR(config.RefuseOthers({"quant_method",
                                                "bits",
                                                "w_bit",
                                                "group_size",
                                                "q_group_size",
                                                "zero_point",
                                                "version",
                                                "format",
                                                "backend",
                                                "modules_to_not_convert",
                                                "do_fuse",
                                                "fuse_max_seq_len",
                                                "modules_to_fuse",
                                                "exllama_config",
                                                "tokenizer",
                                                "dataset",
                                                "damp_percent",
                                                "desc_act",
                                                "act_group_aware",
                                                "sym",
                                                "true_sequential",
                                                "meta",
                                                "model_seqlen",
                                                "block_name_to_quantize",
                                                "module_name_preceding_first_block",
                                                "batch_size",
                                                "pad_token_id",
                                                "max_input_length",
                                                "cache_block_outputs",
                                                "modules_in_block_to_quantize"}));
  const char* bits = config.Has("w_bit") ? "w_bit" : "bits";
  PENSTOCK_RETURN_IF_ERROR(config.IntegerOr(bits, 4, 4, 4).status());
  PENSTOCK_ASSIGN_OR_RETURN(const bool zeros, config.BoolOr("zero_point", true));
  if (!zeros) return config.Bad("zero_point", "true");
  PENSTOCK_ASSIGN_OR_RETURN(const bool ordered, config.BoolOr("desc_act", false));
  if (ordered) return config.Bad("desc_act", "false");
  for (const char* key : {"version", "format"}) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string kind, config.StringOr(key, "gemm"));
    if (kind != "gemm" && kind != "GEMM") return config.Bad(key, "gemm");
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::uint64_t group,
      ReadGroupSize(config, config.Has("q_group_size") ? "q_group_size" : "group_size"));
  PENSTOCK_ASSIGN_OR_RETURN(ModuleList plain, ModuleList::Read(config, "modules_to_not_convert",
                                                               ModuleList::Rule::kPrefixOrSuffix));
  return std::make_shared<AwqFormat>(group, std::move(plain));
}

}  // namespace penstock::shard
