// bitsandbytes. NAME is MODULE.weight:
//
//   4 bits  NAME of N K / 2 bytes, the upper half of a byte first, in flat blocks. A weight is
//           NAME.quant_map[value] * absmax of its block. NAME.quant_state.bitsandbytes__TYPE is
//           JSON: `blocksize`, `dtype`, `shape`. With double quantisation NAME.absmax is U8 and
//           absmax = NAME.nested_quant_map[it] * NAME.nested_absmax + `nested_offset`.
//   8 bits  NAME I8 [N, K] and MODULE.SCB F32 [N]: value * SCB / 127.
//
// Weights of 4 bits are rounded to `dtype`, as the library gives them. Outliers of activations
// (`llm_int8_threshold`) need no care, since activations are not quantised.
#include <algorithm>
#include <boost/json/object.hpp>
#include <optional>

#include "common/dtype.h"
#include "common/status.h"
#include "shard/weights/convert.h"
#include "shard/weights/formats/module_list.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kMostJson = 1 << 16;    // bytes of a quant_state
constexpr float kStep = 7.874015718698502e-3f;  // 1 / 127, as the library has it

// ---- 8 bits ----

class Int8Matrix final : public QuantizedMatrix {
 public:
  Int8Matrix(const Checkpoint& checkpoint, std::vector<const CheckpointTensor*> tensors)
      : QuantizedMatrix(std::move(tensors)), checkpoint_(checkpoint) {}

  absl::Status Expand(Range rows, Range columns, float* out) const override {
    const CheckpointTensor& values = *tensors()[0];
    const std::uint64_t width = values.info->shape[1];
    std::vector<std::int8_t> stored(rows.count * width);
    PENSTOCK_RETURN_IF_ERROR(
        checkpoint_.Read(values, rows.first * width, stored.size(), stored.data()));
    PENSTOCK_ASSIGN_OR_RETURN(
        const auto scales, ReadFloats(checkpoint_, *tensors()[1], "F32", rows.first, rows.count));
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const std::int8_t* row = stored.data() + i * width + columns.first;
      for (std::uint64_t k = 0; k < columns.count; ++k) {
        *out++ = static_cast<float>(row[k]) * scales[i] * kStep;
      }
    }
    return absl::OkStatus();
  }

 private:
  const Checkpoint& checkpoint_;
};

absl::StatusOr<QuantizedMatrixPtr> OpenInt8(const Checkpoint& checkpoint, const WeightPart& part) {
  const std::string module(ModuleOf(part.tensor));
  PENSTOCK_ASSIGN_OR_RETURN(const CheckpointTensor* values,
                            RequireTensor(checkpoint, part.tensor, {part.stored_shape}, {"I8"}));
  PENSTOCK_ASSIGN_OR_RETURN(
      const CheckpointTensor* scales,
      RequireTensor(checkpoint, module + ".SCB", {{part.stored_shape[0]}}, {"F32"}));
  std::vector<const CheckpointTensor*> tensors = {values, scales};
  if (const CheckpointTensor* order = checkpoint.Find(module + ".weight_format")) {
    std::uint8_t value = 0;
    PENSTOCK_RETURN_IF_ERROR(
        checkpoint.Read(*order, 0, std::min<std::uint64_t>(1, order->info->bytes), &value));
    if (value != 0) {
      return absl::InvalidArgumentError(TensorText(checkpoint, *order) + " is " +
                                        std::to_string(value) + "; Penstock loads 0, row by row");
    }
    tensors.push_back(order);
  }
  return std::make_unique<Int8Matrix>(checkpoint, std::move(tensors));
}

// ---- 4 bits ----

// What quant_state says.
struct QuantState {
  std::uint64_t block = 64;
  std::uint64_t nested_block = 256;
  float nested_offset = 0;
  DType dtype = DType::kFloat32;
};

absl::Status CheckStateShape(const ConfigReader& state, const WeightPart& part) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto shape, state.Numbers("shape", 0, 1e12));
  const TensorShape& wanted = part.stored_shape;
  if (std::equal(shape.begin(), shape.end(), wanted.begin(), wanted.end(),
                 [](double a, std::uint64_t b) { return a == static_cast<double>(b); })) {
    return absl::OkStatus();
  }
  return state.Bad("shape", ShapeText(wanted) + ", as config.json asks for");
}

absl::StatusOr<QuantState> ReadState(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                                     const WeightPart& part) {
  const std::string where = TensorText(checkpoint, tensor);
  if (tensor.info->type != "U8" || tensor.info->bytes > kMostJson) {
    return BadTensorType(checkpoint, tensor, "U8 of at most 65536 bytes here");
  }
  std::string text(tensor.info->bytes, '\0');
  PENSTOCK_RETURN_IF_ERROR(checkpoint.Read(tensor, 0, text.size(), text.data()));
  PENSTOCK_ASSIGN_OR_RETURN(const auto object, ParseConfig(text, where));
  const ConfigReader state(object, where);
  QuantState read;
  PENSTOCK_ASSIGN_OR_RETURN(read.block, state.Integer("blocksize", 1, 1u << 16));
  PENSTOCK_ASSIGN_OR_RETURN(read.nested_block,
                            state.IntegerOr("nested_blocksize", 256, 1, 1u << 16));
  PENSTOCK_ASSIGN_OR_RETURN(const double offset, state.NumberOr("nested_offset", 0, -1e30, 1e30));
  read.nested_offset = static_cast<float>(offset);
  PENSTOCK_ASSIGN_OR_RETURN(const std::string dtype, state.StringOr("dtype", "float32"));
  const std::optional<DType> known = ParseDType(dtype);
  if (!known) return state.Bad("dtype", "one of float32, bfloat16, float16");
  read.dtype = *known;
  PENSTOCK_RETURN_IF_ERROR(CheckStateShape(state, part));
  return read;
}

class FourBitMatrix final : public QuantizedMatrix {
 public:
  struct Layout {
    std::uint64_t columns = 0;
    QuantState state;
    const CheckpointTensor* values = nullptr;
    const CheckpointTensor* absmax = nullptr;
    const CheckpointTensor* nested_absmax = nullptr;  // null: absmax is F32
    std::vector<float> map;
    std::vector<float> nested_map;
  };

  FourBitMatrix(const Checkpoint& checkpoint, Layout layout,
                std::vector<const CheckpointTensor*> tensors)
      : QuantizedMatrix(std::move(tensors)), checkpoint_(checkpoint), layout_(std::move(layout)) {}

  absl::Status Expand(Range rows, Range columns, float* out) const override {
    // Whole rows are one piece of the flat values.
    const bool whole = columns.count == layout_.columns;
    const std::uint64_t pieces = whole ? 1 : rows.count;
    const std::uint64_t size = whole ? rows.count * columns.count : columns.count;
    for (std::uint64_t i = 0; i < pieces; ++i) {
      const std::uint64_t first = (rows.first + i) * layout_.columns + columns.first;
      PENSTOCK_RETURN_IF_ERROR(ExpandFlat({first, size}, out + i * size));
    }
    return Round(rows.count * columns.count, out);
  }

 private:
  // The absmax of blocks, in order.
  absl::StatusOr<std::vector<float>> ReadAbsmax(Range blocks) const {
    const bool nested = layout_.nested_absmax != nullptr;
    if (!nested) {
      return ReadFloats(checkpoint_, *layout_.absmax, "F32", blocks.first, blocks.count);
    }
    std::vector<std::uint8_t> stored(blocks.count);
    PENSTOCK_RETURN_IF_ERROR(
        checkpoint_.Read(*layout_.absmax, blocks.first, blocks.count, stored.data()));
    const std::uint64_t wide = layout_.state.nested_block;
    const std::uint64_t first = blocks.first / wide;
    const std::uint64_t count = (blocks.first + blocks.count - 1) / wide - first + 1;
    PENSTOCK_ASSIGN_OR_RETURN(const auto outer,
                              ReadFloats(checkpoint_, *layout_.nested_absmax, "F32", first, count));
    std::vector<float> values(blocks.count);
    for (std::uint64_t i = 0; i < values.size(); ++i) {
      const float scaled = layout_.nested_map[stored[i]] * outer[(blocks.first + i) / wide - first];
      values[i] = scaled + layout_.state.nested_offset;
    }
    return values;
  }

  absl::Status ExpandFlat(Range values, float* out) const {
    if (values.count == 0) return absl::OkStatus();
    const std::uint64_t wide = layout_.state.block, first = values.first / wide;
    const std::uint64_t blocks = (values.first + values.count - 1) / wide - first + 1;
    PENSTOCK_ASSIGN_OR_RETURN(const auto absmax, ReadAbsmax({first, blocks}));
    const std::uint64_t begin = values.first / 2;
    std::vector<std::uint8_t> bytes((values.first + values.count + 1) / 2 - begin);
    PENSTOCK_RETURN_IF_ERROR(checkpoint_.Read(*layout_.values, begin, bytes.size(), bytes.data()));
    for (std::uint64_t i = 0; i < values.count; ++i) {
      const std::uint64_t at = values.first + i;
      const std::uint8_t byte = bytes[at / 2 - begin];
      out[i] = layout_.map[at % 2 == 0 ? byte >> 4 : byte & 15] * absmax[at / wide - first];
    }
    return absl::OkStatus();
  }

  absl::Status Round(std::uint64_t count, float* out) const {
    if (layout_.state.dtype == DType::kFloat32) return absl::OkStatus();
    std::vector<std::uint16_t> rounded(count);
    ConvertElements(out, DType::kFloat32, rounded.data(), layout_.state.dtype, count);
    ConvertElements(rounded.data(), layout_.state.dtype, out, DType::kFloat32, count);
    return absl::OkStatus();
  }

  const Checkpoint& checkpoint_;
  const Layout layout_;
};

// The bytes may be stored in another type (`bnb_4bit_quant_storage`).
absl::Status CheckFourBitValues(const Checkpoint& checkpoint, const CheckpointTensor& values,
                                std::uint64_t elements) {
  const std::uint64_t bytes = CeilDivide(elements, 2);
  if (values.info->bytes == bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(TensorText(checkpoint, values) + " has " +
                                    std::to_string(values.info->bytes) +
                                    " bytes; config.json asks for " + std::to_string(bytes));
}

absl::StatusOr<QuantizedMatrixPtr> OpenFourBits(const Checkpoint& checkpoint,
                                                const WeightPart& part, const std::string& type) {
  const std::string& name = part.tensor;
  const std::string state_name = name + ".quant_state.bitsandbytes__" + type;
  const CheckpointTensor* state = checkpoint.Find(state_name);
  if (state == nullptr) return absl::NotFoundError("tensor " + state_name + " is missing");
  FourBitMatrix::Layout layout{.columns = part.stored_shape[1], .values = checkpoint.Find(name)};
  if (layout.values == nullptr) return absl::NotFoundError("tensor " + name + " is missing");
  const std::uint64_t elements = part.stored_shape[0] * part.stored_shape[1];
  PENSTOCK_RETURN_IF_ERROR(CheckFourBitValues(checkpoint, *layout.values, elements));
  PENSTOCK_ASSIGN_OR_RETURN(layout.state, ReadState(checkpoint, *state, part));
  const std::uint64_t blocks = CeilDivide(elements, layout.state.block);
  const bool nested = checkpoint.Find(name + ".nested_absmax") != nullptr;
  PENSTOCK_ASSIGN_OR_RETURN(layout.absmax, RequireTensor(checkpoint, name + ".absmax", {{blocks}},
                                                         {nested ? "U8" : "F32"}));
  PENSTOCK_ASSIGN_OR_RETURN(const CheckpointTensor* map,
                            RequireTensor(checkpoint, name + ".quant_map", {{16}}, {"F32"}));
  PENSTOCK_ASSIGN_OR_RETURN(layout.map, ReadFloats(checkpoint, *map, "F32", 0, 16));
  std::vector<const CheckpointTensor*> tensors = {layout.values, layout.absmax, map, state};
  if (nested) {
    PENSTOCK_ASSIGN_OR_RETURN(
        layout.nested_absmax,
        RequireTensor(checkpoint, name + ".nested_absmax",
                      {{CeilDivide(blocks, layout.state.nested_block)}}, {"F32"}));
    PENSTOCK_ASSIGN_OR_RETURN(
        const CheckpointTensor* nested_map,
        RequireTensor(checkpoint, name + ".nested_quant_map", {{256}}, {"F32"}));
    PENSTOCK_ASSIGN_OR_RETURN(layout.nested_map,
                              ReadFloats(checkpoint, *nested_map, "F32", 0, 256));
    tensors.insert(tensors.end(), {layout.nested_absmax, nested_map});
  }
  return std::make_unique<FourBitMatrix>(checkpoint, std::move(layout), std::move(tensors));
}

class BitsAndBytesFormat final : public StoredFormat {
 public:
  // `type`: nf4 or fp4; empty: 8 bits.
  BitsAndBytesFormat(std::string type, ModuleList plain)
      : StoredFormat("bitsandbytes " + (type.empty() ? "int8" : type)),
        type_(std::move(type)),
        plain_(std::move(plain)) {}

  absl::StatusOr<QuantizedMatrixPtr> Open(const Checkpoint& checkpoint,
                                          const WeightPart& part) const override {
    const CheckpointTensor* tensor = checkpoint.Find(part.tensor);
    const CheckpointTensor* absmax = checkpoint.Find(part.tensor + ".absmax");
    if (absmax == nullptr && (tensor == nullptr || tensor->info->dtype.has_value())) {
      return nullptr;
    }
    const CheckpointTensor& shown = tensor == nullptr ? *absmax : *tensor;
    if (plain_.Names(ModuleOf(part.tensor))) {
      return BadTensorType(checkpoint, shown,
                           "F32, BF16 and F16 here: config.json says it is "
                           "not quantised");
    }
    PENSTOCK_RETURN_IF_ERROR(RequirePlainMatrix(checkpoint, shown, part));
    return type_.empty() ? OpenInt8(checkpoint, part) : OpenFourBits(checkpoint, part, type_);
  }

 private:
  const std::string type_;
  const ModuleList plain_;
};

}  // namespace

absl::StatusOr<StoredFormatPtr> ReadBitsAndBytes(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(config.RefuseOthers(
      {"quant_method", "load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit",
       "llm_int8_threshold", "llm_int8_skip_modules", "llm_int8_enable_fp32_cpu_offload",
       "llm_int8_has_fp16_weight", "bnb_4bit_compute_dtype", "bnb_4bit_quant_type",
       "bnb_4bit_use_double_quant", "bnb_4bit_quant_storage"}));
  PENSTOCK_ASSIGN_OR_RETURN(const bool four, config.BoolOr("load_in_4bit", false));
  PENSTOCK_ASSIGN_OR_RETURN(const bool eight, config.BoolOr("load_in_8bit", false));
  if (four == eight) return config.Bad("load_in_4bit", "true, or `load_in_8bit`, but not both");
  std::string type;
  if (four) {
    PENSTOCK_ASSIGN_OR_RETURN(type, config.StringOr("bnb_4bit_quant_type", "fp4"));
    if (type != "nf4" && type != "fp4") return config.Bad("bnb_4bit_quant_type", "nf4 or fp4");
  }
  PENSTOCK_ASSIGN_OR_RETURN(ModuleList plain, ModuleList::Read(config, "llm_int8_skip_modules",
                                                               ModuleList::Rule::kPrefixOrSuffix));
  return std::make_shared<BitsAndBytesFormat>(std::move(type), std::move(plain));
}

}  // namespace penstock::shard
