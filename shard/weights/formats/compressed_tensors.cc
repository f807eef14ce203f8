// compressed-tensors, by the `format` of each group of `config_groups`. NAME is MODULE.weight:
//
//   pack-quantized        NAME_packed I32 [N, K bits / 32], low bits first, as values plus
//                         2^(bits - 1); zero points likewise, packed along N
//   int-quantized         NAME I8 [N, K]; zero points I8
//   float-quantized       NAME F8_E4M3 [N, K]
//   nvfp4-pack-quantized  NAME_packed U8 [N, K / 2] of E2M1, the lower half first; scales in
//                         F8_E4M3, divided by NAME_global_scale
//   mxfp4-pack-quantized  the same with exponents of two in U8
//
// NAME_scale holds a scale per matrix, row, group or block; NAME_g_idx the group of each column. A
// weight is (value - zero) * scale.
#include <algorithm>
#include <optional>

#include "common/status.h"
#include "shard/weights/formats/block_scaled.h"
#include "shard/weights/formats/fp8_matrix.h"
#include "shard/weights/formats/module_list.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::string_view kPack = "pack-quantized", kInt = "int-quantized",
                           kFloat = "float-quantized", kNvfp4 = "nvfp4-pack-quantized",
                           kMxfp4 = "mxfp4-pack-quantized";
constexpr std::string_view kLinear = "Linear";  // the class as a target

// How the matrices of a group are stored.
struct Scheme {
  ModuleList targets;
  std::string format;
  std::uint32_t bits = 8;
  bool symmetric = true;
  bool grouped = false;
  std::uint64_t block_rows = 0;  // with one scale; 0: all of them
  std::uint64_t block_columns = 0;
};

// ---- config.json ----

absl::Status ReadBlocks(const ConfigReader& weights, Scheme& scheme) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string strategy, weights.StringOr("strategy", ""));
  if (strategy.empty()) strategy = weights.Has("group_size") ? "group" : "tensor";
  if (strategy == "channel") {
    scheme.block_rows = 1;
  } else if (strategy == "group" || strategy == "tensor_group") {
    PENSTOCK_ASSIGN_OR_RETURN(scheme.block_columns, weights.Integer("group_size", 1, 1u << 20));
    scheme.block_rows = 1;
    scheme.grouped = true;
  } else if (strategy == "block") {
    constexpr char kKey[] = "block_structure";
    PENSTOCK_ASSIGN_OR_RETURN(const auto block, weights.Numbers(kKey, 1.0, 1 << 20));
    if (block.size() != 2) return weights.Bad(kKey, "two numbers: rows and columns");
    scheme.block_rows = static_cast<std::uint64_t>(block[0]);
    scheme.block_columns = static_cast<std::uint64_t>(block[1]);
  } else if (strategy != "tensor") {
    return weights.Bad("strategy", "tensor, channel, group, tensor_group or block");
  }
  return absl::OkStatus();
}

// Whether bits, type, symmetry and strategy are among those of the format.
absl::Status CheckScheme(const ConfigReader& weights, const Scheme& scheme) {
  const bool pack = scheme.format == kPack, floats = scheme.format == kFloat,
             ints = scheme.format == kInt;
  const bool small = !pack && !floats && !ints;  // E2M1
  const bool bits_fit =
      pack ? scheme.bits == 4 || scheme.bits == 8 : scheme.bits == (small ? 4u : 8u);
  if (!bits_fit) {
    return weights.Bad("num_bits", (pack    ? "4 or 8 for "
                                    : small ? "4 for "
                                            : "8 for ") +
                                       scheme.format);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string type, weights.StringOr("type", "int"));
  const std::string_view wanted = pack || ints ? "int" : "float";
  if (type != wanted) return weights.Bad("type", std::string(wanted) + " for " + scheme.format);
  if (!scheme.symmetric && !pack && !ints) {
    return weights.Bad("symmetric", "true for " + scheme.format);
  }
  if (small && !scheme.grouped) return weights.Bad("strategy", "group or tensor_group here");
  if (pack && scheme.block_rows > 1) {
    return weights.Bad("strategy", "tensor, channel or group for " + scheme.format);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFormatName(const ConfigReader& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, config.StringOr("format", ""));
  for (const std::string_view known : {kPack, kInt, kFloat, kNvfp4, kMxfp4}) {
    if (name == known) return name;
  }
  return config.Bad("format",
                    "one of pack-quantized, int-quantized, float-quantized, "
                    "nvfp4-pack-quantized, mxfp4-pack-quantized");
}

// Nothing if the group quantises activations alone. `config` has the format of groups without one.
absl::StatusOr<std::optional<Scheme>> ReadGroup(const ConfigReader& config,
                                                const ConfigReader& group) {
  PENSTOCK_RETURN_IF_ERROR(
      group.RefuseOthers({"targets", "weights", "input_activations", "format"}));
  PENSTOCK_ASSIGN_OR_RETURN(const auto weights, group.Object("weights"));
  if (!weights.has_value()) return std::nullopt;
  PENSTOCK_RETURN_IF_ERROR(weights->RefuseOthers(
      {"num_bits", "type", "symmetric", "group_size", "strategy", "block_structure", "dynamic",
       "actorder", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"}));
  Scheme scheme;
  PENSTOCK_ASSIGN_OR_RETURN(
      scheme.targets, ModuleList::Read(group, "targets", ModuleList::Rule::kExactOrExpression));
  PENSTOCK_ASSIGN_OR_RETURN(scheme.format, ReadFormatName(group.Has("format") ? group : config));
  PENSTOCK_ASSIGN_OR_RETURN(scheme.bits, weights->IntegerOr("num_bits", 8, 1, 64));
  PENSTOCK_ASSIGN_OR_RETURN(scheme.symmetric, weights->BoolOr("symmetric", true));
  PENSTOCK_ASSIGN_OR_RETURN(const bool dynamic, weights->BoolOr("dynamic", false));
  if (dynamic) return weights->Bad("dynamic", "false");
  PENSTOCK_RETURN_IF_ERROR(ReadBlocks(*weights, scheme));
  PENSTOCK_RETURN_IF_ERROR(CheckScheme(*weights, scheme));
  return scheme;
}

absl::StatusOr<std::vector<Scheme>> ReadGroups(const ConfigReader& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto groups, config.Object("config_groups"));
  std::vector<Scheme> schemes;
  for (const std::string& key : groups.has_value() ? groups->Keys() : std::vector<std::string>()) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto group, groups->Object(key));
    PENSTOCK_ASSIGN_OR_RETURN(auto scheme, ReadGroup(config, *group));
    if (scheme.has_value()) schemes.push_back(std::move(*scheme));
  }
  if (schemes.empty()) return config.Bad("config_groups", "an object of groups with `weights`");
  return schemes;
}

// What would change answers: weights that are sparse, rotated or not compressed yet.
absl::Status RefuseSparseOrRotated(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(config.RefuseOthers(
      {"quant_method", "format", "config_groups", "ignore", "quantization_status",
       "global_compression_ratio", "version", "sparsity_config", "transform_config",
       "run_compressed", "dequantize", "use_optimized_inference"}));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string status,
                            config.StringOr("quantization_status", "compressed"));
  if (status != "compressed") return config.Bad("quantization_status", "compressed");
  PENSTOCK_ASSIGN_OR_RETURN(const auto sparsity, config.Object("sparsity_config"));
  if (sparsity.has_value()) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string format, sparsity->StringOr("format", "dense"));
    if (format != "dense") return sparsity->Bad("format", "dense");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto transform, config.Object("transform_config"));
  if (transform.has_value() && !transform->Keys().empty()) {
    return config.Bad("transform_config", "empty: rotated weights are not read");
  }
  return absl::OkStatus();
}

// ---- matrices ----

// The scales [rows of blocks, columns of blocks] of a matrix of `rows` x `columns`.
absl::StatusOr<BlockScales> FindScales(const Checkpoint& checkpoint, const WeightPart& part,
                                       const Scheme& scheme,
                                       std::initializer_list<std::string_view> types) {
  const std::uint64_t rows = part.stored_shape[0], columns = part.stored_shape[1];
  BlockScales scales{.block_rows = scheme.block_rows == 0 ? rows : scheme.block_rows,
                     .block_columns = scheme.block_columns == 0 ? columns : scheme.block_columns};
  const std::uint64_t down = CeilDivide(rows, scales.block_rows),
                      across = CeilDivide(columns, scales.block_columns);
  std::vector<TensorShape> shapes = {{down, across}};
  if (across == 1) shapes.push_back({down});
  if (across == 1 && down == 1) shapes.emplace_back();
  PENSTOCK_ASSIGN_OR_RETURN(scales.tensor,
                            RequireTensor(checkpoint, part.tensor + "_scale", shapes, types));
  scales.type = scales.tensor->info->type;
  return scales;
}

absl::StatusOr<BlockZeros> FindZeros(const Checkpoint& checkpoint, const WeightPart& part,
                                     const Scheme& scheme, const BlockScales& scales) {
  if (scheme.symmetric) return BlockZeros{};
  BlockZeros zeros;
  const std::string name = part.tensor + "_zero_point";
  if (scheme.format == kPack && scheme.block_rows == 1) {
    zeros.packed_bits = scheme.bits;
    const std::uint64_t across = CeilDivide(part.stored_shape[1], scales.block_columns);
    const TensorShape shape = {CeilDivide(part.stored_shape[0] * scheme.bits, 32), across};
    PENSTOCK_ASSIGN_OR_RETURN(zeros.tensor, RequireTensor(checkpoint, name, {shape}, {"I32"}));
    return zeros;
  }
  PENSTOCK_ASSIGN_OR_RETURN(zeros.tensor,
                            RequireTensor(checkpoint, name, {scales.tensor->info->shape}, {"I8"}));
  return zeros;
}

// The shape that packed integers say they have.
absl::Status CheckStoredShape(const Checkpoint& checkpoint, const WeightPart& part) {
  const CheckpointTensor* tensor = checkpoint.Find(part.tensor + "_shape");
  if (tensor == nullptr) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(
      RequireTensor(checkpoint, part.tensor + "_shape", {{2}}, {"I64", "I32"}).status());
  const bool wide = tensor->info->type == "I64";
  PENSTOCK_ASSIGN_OR_RETURN(const auto words, ReadWords(checkpoint, *tensor, 0, wide ? 4 : 2));
  const TensorShape shape = wide ? TensorShape{words[0] | std::uint64_t{words[1]} << 32,
                                               words[2] | std::uint64_t{words[3]} << 32}
                                 : TensorShape{words[0], words[1]};
  if (shape == part.stored_shape) return absl::OkStatus();
  return absl::InvalidArgumentError(TensorText(checkpoint, *tensor) + " says " + ShapeText(shape) +
                                    "; config.json asks for " + ShapeText(part.stored_shape));
}

class CompressedTensorsFormat final : public StoredFormat {
 public:
  CompressedTensorsFormat(std::vector<Scheme> schemes, ModuleList ignore)
      : StoredFormat(NameOf(schemes)), schemes_(std::move(schemes)), ignore_(std::move(ignore)) {}

  absl::StatusOr<QuantizedMatrixPtr> Open(const Checkpoint& checkpoint,
                                          const WeightPart& part) const override {
    const CheckpointTensor* tensor = Quantized(checkpoint, part);
    if (tensor == nullptr) return nullptr;
    const std::string_view module = ModuleOf(part.tensor);
    const Scheme* scheme = SchemeOf(module);
    if (scheme == nullptr || ignore_.Names(module)) {
      return BadTensorType(checkpoint, *tensor,
                           "F32, BF16 and F16 here: config.json says it is not quantised");
    }
    PENSTOCK_RETURN_IF_ERROR(RequirePlainMatrix(checkpoint, *tensor, part));
    if (scheme->format == kFloat) {
      if (tensor->info->type != "F8_E4M3") return WrongType(checkpoint, *tensor, *scheme);
      return OpenFp8(checkpoint, part,
                     {part.tensor + "_scale", scheme->block_rows, scheme->block_columns});
    }
    return OpenBlocks(checkpoint, part, *scheme, *tensor);
  }

 private:
  static std::string NameOf(const std::vector<Scheme>& schemes) {
    std::string name = "compressed-tensors";
    std::vector<std::string> formats;
    for (const Scheme& scheme : schemes) {
      if (std::find(formats.begin(), formats.end(), scheme.format) != formats.end()) continue;
      formats.push_back(scheme.format);
      name += (formats.size() == 1 ? " " : ", ") + scheme.format;
    }
    return name;
  }

  static const CheckpointTensor* Quantized(const Checkpoint& checkpoint, const WeightPart& part) {
    const CheckpointTensor* tensor = checkpoint.Find(part.tensor + "_packed");
    if (tensor != nullptr) return tensor;
    tensor = checkpoint.Find(part.tensor);
    return tensor == nullptr || tensor->info->dtype.has_value() ? nullptr : tensor;
  }

  // Names and expressions count before the class. A single group is that of all.
  const Scheme* SchemeOf(std::string_view module) const {
    if (schemes_.size() == 1) return &schemes_.front();
    for (const Scheme& scheme : schemes_) {
      if (scheme.targets.Names(module)) return &scheme;
    }
    for (const Scheme& scheme : schemes_) {
      if (scheme.targets.Has(kLinear)) return &scheme;
    }
    return nullptr;
  }

  static absl::Status WrongType(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                                const Scheme& scheme) {
    const std::string_view wanted = scheme.format == kPack    ? "I32"
                                    : scheme.format == kInt   ? "I8"
                                    : scheme.format == kFloat ? "F8_E4M3"
                                                              : "U8";
    return BadTensorType(checkpoint, tensor, std::string(wanted) + " for " + scheme.format);
  }

  // Whether the tensor has the type and the shape of the format's values.
  static absl::Status CheckValues(const Checkpoint& checkpoint, const WeightPart& part,
                                  const Scheme& scheme, const CheckpointTensor& tensor) {
    const std::uint64_t rows = part.stored_shape[0], columns = part.stored_shape[1];
    const bool pack = scheme.format == kPack, ints = scheme.format == kInt;
    if (tensor.info->type != (pack ? "I32" : ints ? "I8" : "U8")) {
      return WrongType(checkpoint, tensor, scheme);
    }
    const TensorShape shape = {rows, pack   ? CeilDivide(columns * scheme.bits, 32)
                                     : ints ? columns
                                            : CeilDivide(columns, 2)};
    return CheckShape(checkpoint, &tensor, tensor.info->name, {shape});
  }

  static PackedValues ValuesOf(const Scheme& scheme, const CheckpointTensor& tensor) {
    const bool pack = scheme.format == kPack, ints = scheme.format == kInt;
    const float* table = ints               ? Int8Table().data()
                         : !pack            ? kE2m1.data()
                         : scheme.bits == 8 ? Offset8Table().data()
                                            : kOffset4.data();
    return {.tensor = &tensor,
            .bits = scheme.bits,
            .table = table,
            .row_bytes = tensor.info->shape[1] * (pack ? 4 : 1)};
  }

  static absl::StatusOr<QuantizedMatrixPtr> OpenBlocks(const Checkpoint& checkpoint,
                                                       const WeightPart& part, const Scheme& scheme,
                                                       const CheckpointTensor& tensor) {
    PENSTOCK_RETURN_IF_ERROR(CheckValues(checkpoint, part, scheme, tensor));
    PENSTOCK_RETURN_IF_ERROR(CheckStoredShape(checkpoint, part));
    BlockScaledMatrix::Layout layout{.rows = part.stored_shape[0],
                                     .columns = part.stored_shape[1],
                                     .values = ValuesOf(scheme, tensor)};
    std::vector<const CheckpointTensor*> tensors = {&tensor};
    const bool nvfp4 = scheme.format == kNvfp4, mxfp4 = scheme.format == kMxfp4;
    if (nvfp4) {
      PENSTOCK_ASSIGN_OR_RETURN(layout.scales, FindScales(checkpoint, part, scheme, {"F8_E4M3"}));
      PENSTOCK_ASSIGN_OR_RETURN(
          const CheckpointTensor* global,
          RequireTensor(checkpoint, part.tensor + "_global_scale", {{1}, {}}, {"F32"}));
      PENSTOCK_ASSIGN_OR_RETURN(const auto divisor, ReadFloats(checkpoint, *global, "F32", 0, 1));
      layout.scales.divisor = divisor.front();
      tensors.push_back(global);
    } else if (mxfp4) {
      PENSTOCK_ASSIGN_OR_RETURN(layout.scales,
                                FindScales(checkpoint, part, scheme, {"U8", "F8_E8M0"}));
      layout.scales.type = "F8_E8M0";
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(layout.scales,
                                FindScales(checkpoint, part, scheme, {"F32", "BF16", "F16"}));
      PENSTOCK_ASSIGN_OR_RETURN(layout.zeros, FindZeros(checkpoint, part, scheme, layout.scales));
    }
    PENSTOCK_RETURN_IF_ERROR(FindGroups(checkpoint, part, scheme, layout, tensors));
    tensors.push_back(layout.scales.tensor);
    if (layout.zeros.tensor != nullptr) tensors.push_back(layout.zeros.tensor);
    AddIfStored(checkpoint, part.tensor, {"_shape"}, tensors);
    AddIfStored(checkpoint, std::string(ModuleOf(part.tensor)),
                {".input_scale", ".input_zero_point", ".input_global_scale"}, tensors);
    return std::make_unique<BlockScaledMatrix>(checkpoint, std::move(layout), std::move(tensors));
  }

  // With `actorder` the groups of columns may be in any order.
  static absl::Status FindGroups(const Checkpoint& checkpoint, const WeightPart& part,
                                 const Scheme& scheme, BlockScaledMatrix::Layout& layout,
                                 std::vector<const CheckpointTensor*>& tensors) {
    const std::string name = part.tensor + "_g_idx";
    if (checkpoint.Find(name) == nullptr || !scheme.grouped) return absl::OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const CheckpointTensor* index,
                              RequireTensor(checkpoint, name, {{layout.columns}}, {"I32"}));
    tensors.push_back(index);
    const std::uint64_t groups = CeilDivide(layout.columns, layout.scales.block_columns);
    PENSTOCK_ASSIGN_OR_RETURN(layout.group_of_column, ReadGroupIndex(checkpoint, *index, groups));
    return absl::OkStatus();
  }

  const std::vector<Scheme> schemes_;
  const ModuleList ignore_;
};

}  // namespace

absl::StatusOr<StoredFormatPtr> ReadCompressedTensors(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(RefuseSparseOrRotated(config));
  PENSTOCK_ASSIGN_OR_RETURN(auto schemes, ReadGroups(config));
  PENSTOCK_ASSIGN_OR_RETURN(
      ModuleList ignore, ModuleList::Read(config, "ignore", ModuleList::Rule::kExactOrExpression));
  return std::make_shared<CompressedTensorsFormat>(std::move(schemes), std::move(ignore));
}

}  // namespace penstock::shard
