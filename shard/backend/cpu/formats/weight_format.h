// How the CPU backend stores and multiplies weight matrices. A matrix is packed in panels of
// columns (packed_matrix.h); a WeightFormat says how many bytes a panel has, fills it and reads it
// back, and its FormatKernels multiply it. Code outside this folder does not know which format
// runs.
//
// A new format adds a class here, its kernels in kernels/, and one line each in FormatId and
// weight_format.cc.
//
// Threading: formats are constants; any thread may use them.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/dtype.h"
#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/isa.h"
#include "shard/weights/quantization.h"

namespace penstock::shard::cpu {

// The size of a panel.
struct PanelShape {
  std::size_t columns = 0;  // at most kMaxPanel
  std::size_t inner = 0;    // K
  std::size_t pack = 1;     // FormatKernels::pack
  DType dtype = DType::kFloat32;
  bool int4_rows = false;  // the rows of PackPanel are those of WeightSource::ReadInt4Rows
  std::size_t Steps() const { return (inner + pack - 1) / pack; }
};

// Memory for blocks of weights that a format cannot store in their panels. All matrices of a model
// share one. Threading: Add from any thread.
class Overflow {
 public:
  Overflow() = default;
  // `block_bytes` for each of `blocks` blocks.
  Overflow(std::byte* memory, std::size_t blocks, std::size_t block_bytes)
      : memory_(memory), blocks_(blocks), block_bytes_(block_bytes) {}

  // The index of the new block; nothing if all are used. `bytes` is at most the size of a block.
  std::optional<std::uint32_t> Add(const std::byte* weights, std::size_t bytes);

 private:
  std::byte* memory_ = nullptr;
  std::size_t blocks_ = 0;
  std::size_t block_bytes_ = 0;
  std::atomic<std::size_t> used_ = 0;
};

// A panel in memory.
struct PanelMemory {
  std::byte* data = nullptr;
  float* scales = nullptr;  // of its columns, if the format has them
};
struct PanelView {
  const std::byte* data = nullptr;
  const float* scales = nullptr;
  const std::byte* overflow = nullptr;
};

class WeightFormat {
 public:
  virtual ~WeightFormat() = default;

  virtual FormatId id() const = 0;
  // A value of --cpu-weights, and part of the identity of cached weights.
  virtual std::string_view name() const = 0;
  // The end of the backend's name, after the instruction set.
  virtual std::string_view backend_suffix() const = 0;
  // The features that a machine needs for the kernels. For error texts.
  virtual std::string_view Needs() const = 0;

  virtual std::size_t PanelBytes(const PanelShape& shape) const = 0;
  // Whether a matrix has a float32 scale for each packed column after its panels.
  virtual bool has_column_scales() const { return false; }

  // A format that cannot store every matrix or all weights has another one instead; else null.
  virtual const WeightFormat* Fallback() const { return nullptr; }
  // Whether it can store matrices with this panel.
  virtual bool Fits(const PanelShape&) const { return true; }
  // How many blocks of a panel may need overflow at most, and bytes for `blocks` blocks of a model.
  virtual std::size_t OverflowBlocks(const PanelShape&) const { return 0; }
  virtual std::size_t OverflowBytes(std::size_t) const { return 0; }
  virtual Overflow OverflowIn(std::span<std::byte>) const { return {}; }

  // Whether PackPanel takes rows of PanelShape::int4_rows.
  virtual bool TakesInt4Rows() const { return false; }
  // Returns false if the overflow is used up: the weights do not fit the format.
  virtual bool PackPanel(const PanelSource& rows, const PanelShape& shape,
                         const FormatKernels& kernels, const PanelMemory& out,
                         Overflow& overflow) const = 0;
  // The K values of one column of a panel, widened.
  virtual void UnpackColumn(const PanelView& panel, const PanelShape& shape, std::size_t column,
                            float* out) const = 0;
};

const WeightFormat& FormatOf(FormatId id);
std::span<const WeightFormat* const> AllFormats();

// Which format stores the matrices of a model.
struct FormatRequest {
  DType dtype = DType::kFloat32;
  Quantization quantization = Quantization::kNone;
  std::string wanted = "auto";  // --cpu-weights: auto or the name of a format
};

// InvalidArgument if the wanted format is unknown or unavailable here.
absl::StatusOr<const WeightFormat*> ChooseFormat(const FormatTable& kernels, Isa isa,
                                                 const FormatRequest& request);

// `count` values of dtype float32 or bfloat16, widened.
void WidenRow(const std::byte* from, DType dtype, std::size_t count, float* to);

// One value of dtype float32 or bfloat16.
float ReadElement(const void* data, std::size_t index, DType dtype);

}  // namespace penstock::shard::cpu
