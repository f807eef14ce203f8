#include <algorithm>

#include "shard/backend/cpu/formats/compressed_block.h"
#include "shard/backend/cpu/formats/formats.h"

namespace penstock::shard::cpu {
namespace {

// There is overflow for one block in kBlocksPerOverflow, and for kLeastOverflow at least.
constexpr std::size_t kBlocksPerOverflow = 128;
constexpr std::size_t kLeastOverflow = 16;

class Compressed final : public WeightFormat {
 public:
  FormatId id() const override { return FormatId::kCompressed; }
  std::string_view name() const override { return "compressed"; }
  std::string_view backend_suffix() const override { return "-compressed"; }
  std::string_view Needs() const override { return "the instruction set avx512-bf16"; }

  std::size_t PanelBytes(const PanelShape& shape) const override {
    return CompressedBytes(PlainFormat().PanelBytes(shape));
  }
  const WeightFormat* Fallback() const override { return &PlainFormat(); }
  // Panels of whole groups.
  bool Fits(const PanelShape& shape) const override {
    return PlainFormat().PanelBytes(shape) % kPlainGroupBytes == 0;
  }
  std::size_t OverflowBlocks(const PanelShape& shape) const override {
    return CompressedBlocks(PlainFormat().PanelBytes(shape));
  }
  std::size_t OverflowBytes(std::size_t blocks) const override {
    return std::min(blocks, blocks / kBlocksPerOverflow + kLeastOverflow) * kPlainBlockBytes;
  }
  Overflow OverflowIn(std::span<std::byte> memory) const override {
    return {memory.data(), memory.size() / kPlainBlockBytes, kPlainBlockBytes};
  }

  bool PackPanel(const PanelSource& rows, const PanelShape& shape, const FormatKernels&,
                 const PanelMemory& panel, Overflow& overflow) const override {
    alignas(64) std::byte plain[kPlainBlockBytes];
    std::byte* out = panel.data;
    const std::size_t step_bytes = shape.columns * shape.pack * DTypeBytes(shape.dtype);
    const std::size_t most = kPlainBlockBytes / step_bytes;
    for (std::size_t first = 0; first < shape.Steps(); first += most) {
      const std::size_t count = std::min(most, shape.Steps() - first);
      PackPlainSteps(rows, shape, first, count, plain);
      if (!CompressBlock(plain, count * step_bytes, overflow, out)) return false;
      out += CompressedBytes(count * step_bytes);
    }
    return true;
  }
  void UnpackColumn(const PanelView& panel, const PanelShape& shape, std::size_t column,
                    float* out) const override {
    const std::size_t pack = shape.pack;
    for (std::size_t k = 0; k < shape.inner; ++k) {
      const std::size_t at = (k / pack * shape.columns + column) * pack + k % pack;
      const std::uint16_t bits = CompressedWeight(panel.data, at, panel.overflow);
      out[k] = ReadElement(&bits, 0, DType::kBFloat16);
    }
  }
};

}  // namespace

const WeightFormat& CompressedFormat() {
  static const Compressed format;
  return format;
}

}  // namespace penstock::shard::cpu
