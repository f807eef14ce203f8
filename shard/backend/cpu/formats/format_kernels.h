// The kernels of the weight formats: for each format a GEMM and, if the format needs them, kernels
// that quantise its input and pack its weights. Only formats/kernels/ is compiled for an
// instruction set; plain function pointers lead there.
//
// Determinism: every output is one chain of fused multiply-adds over K in ascending order, so its
// bits do not depend on the number of rows or threads. Formats of integers join groups of K that
// way; the integer sum within a group is exact, and the same in any order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/dtype.h"
#include "shard/backend/cpu/isa.h"
#include "shard/model/activation.h"

namespace penstock::shard::cpu {

inline constexpr std::size_t kRowTile = 6;         // rows of a register tile
inline constexpr std::size_t kGemmRowBlock = 480;  // rows whose partial sums fit the scratch
inline constexpr std::size_t kMaxPanel = 32;       // columns of a panel of packed weights
inline constexpr std::size_t kGemmScratch = kGemmRowBlock * kMaxPanel;  // floats, per thread

// Formats of integers quantise what their weights are multiplied with, row by row, in groups along
// K with a scale each: of kIntegerGroup values, or of kInt4Group for int4.
inline constexpr std::size_t kIntegerGroup = 128;

// Constants of the formats int4, int8 and int16 (formats.h).
inline constexpr std::size_t kInt4Group = 32;
inline constexpr std::size_t kInt4Pack = 8;
inline constexpr std::size_t kInt4HeaderBytes = 10;  // of a column, for kIntegerGroup values of K
inline constexpr std::size_t kInt8Pack = 4;
inline constexpr std::size_t kInt16Pack = 2;
inline constexpr std::int32_t kInt16Largest = 8191;
inline constexpr std::int32_t kInt16Sum = INT32_MAX / kInt16Largest;  // 262,175

// A group of a quantised row.
struct IntegerGroup {
  float scale = 0;  // NaN if a value of the group is not finite
  // Of int8: -128 times the sum of the group's integers; of int4: their negative sum.
  std::int32_t offset = 0;
};

// Quantised rows.
struct IntegerRows {
  std::byte* values = nullptr;
  std::size_t stride = 0;  // bytes
  IntegerGroup* groups = nullptr;
  std::size_t group_stride = 0;
};

struct QuantizeArgs {
  const void* input = nullptr;  // activations of one row, readable up to a multiple of 32
  std::size_t size = 0;
  std::byte* values = nullptr;
  IntegerGroup* groups = nullptr;
};

// The rows of the weights that become the columns of a panel; null is padding.
using PanelSource = std::array<const std::byte*, kMaxPanel>;

struct PackPanelArgs {
  const std::byte* const* rows = nullptr;  // of a PanelSource
  std::size_t inner = 0;
  std::byte* out = nullptr;
};

enum class Epilogue : std::uint8_t {
  kStore,     // float32 out = sum + bias
  kAdd,       // float32 out += sum + bias
  kGate,      // activations out = activation(gate) * up; vectors of gate and up alternate
  kActivate,  // activations out = activation(sum + bias)
};

struct GemmArgs {
  // Activations [rows, input_stride], zero from K to its padded size. If the format quantises its
  // input: the values of IntegerRows, with their stride in bytes.
  const void* input = nullptr;
  std::size_t input_stride = 0;
  const IntegerGroup* groups = nullptr;  // [rows, group_stride] of a quantised input
  std::size_t group_stride = 0;
  std::size_t rows = 0;
  const void* weights = nullptr;        // packed
  const std::byte* overflow = nullptr;  // of the format (weight_format.h)
  std::size_t steps = 0;                // K, padded, in units of `pack`
  std::size_t first_vector = 0;         // of packed columns; for kGate even, as `vectors`
  std::size_t vectors = 0;
  const float* bias = nullptr;    // in packed order, padded; or null
  const float* scales = nullptr;  // of the packed columns; or null
  void* out = nullptr;            // [rows, out_stride]
  std::size_t out_stride = 0;
  std::size_t out_columns = 0;  // nothing is written from here on
  // For each row null, or values that join its sums: of the packed columns from first_vector on.
  const float* const* added = nullptr;  // null: for no row
  Epilogue epilogue = Epilogue::kStore;
  Activation activation = Activation::kSilu;  // of kGate and kActivate
  float* scratch = nullptr;                   // kGemmScratch floats of this thread
};

// The kernels of one format for one instruction set and type of weights.
struct FormatKernels {
  void (*gemm)(const GemmArgs& args) = nullptr;  // null: the format is not available
  std::size_t pack = 1;                          // elements of K that lie together, one step
  // Null if the GEMM reads activations as they are.
  void (*quantize)(const QuantizeArgs& args) = nullptr;
  std::size_t step_bytes = 0;         // of a quantised row, per step
  std::size_t group = kIntegerGroup;  // values of a quantised row with one scale
  // Null if packing needs no kernel.
  void (*pack_panel)(const PackPanelArgs& args) = nullptr;
};

// All formats; a new one adds a line here and in weight_format.cc.
enum class FormatId : std::uint8_t { kPlain, kCompressed, kInt8, kInt16, kInt4 };
inline constexpr std::size_t kFormatCount = 5;

struct FormatTable {
  std::array<FormatKernels, kFormatCount> kernels;
  constexpr const FormatKernels& operator[](FormatId id) const {
    return kernels[static_cast<std::size_t>(id)];
  }
  constexpr FormatKernels& operator[](FormatId id) { return kernels[static_cast<std::size_t>(id)]; }
};

// For float32 or bfloat16 weights.
FormatTable FindFormatKernels(Isa isa, DType weight);

}  // namespace penstock::shard::cpu
