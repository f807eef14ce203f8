#include "shard/backend/cpu/formats/weight_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "common/bad_option.h"
#include "shard/backend/cpu/formats/formats.h"

namespace penstock::shard::cpu {
namespace {

// In the order of FormatId.
const WeightFormat* const kFormats[] = {&PlainFormat(), &CompressedFormat(), &Int8Format(),
                                        &Int16Format(), &Int4Format()};
static_assert(std::size(kFormats) == kFormatCount);

// What `auto` prefers, best first. Plain is always there.
constexpr FormatId kPreferred[] = {FormatId::kInt16, FormatId::kCompressed, FormatId::kPlain};

// "auto, plain or compressed": what may be wanted.
std::string Available(const FormatTable& kernels) {
  std::string names = "auto";
  std::string last = "plain";
  for (const FormatId id : kPreferred) {
    if (id == FormatId::kPlain || kernels[id].gemm == nullptr) continue;
    names += ", " + last;
    last = FormatOf(id).name();
  }
  return names + " or " + last;
}

}  // namespace

std::optional<std::uint32_t> Overflow::Add(const std::byte* weights, std::size_t bytes) {
  const std::size_t index = used_.fetch_add(1);
  if (index >= blocks_) return std::nullopt;
  std::memcpy(memory_ + index * block_bytes_, weights, bytes);
  return static_cast<std::uint32_t>(index);
}

const WeightFormat& FormatOf(FormatId id) { return *kFormats[static_cast<std::size_t>(id)]; }

std::span<const WeightFormat* const> AllFormats() { return kFormats; }

absl::StatusOr<const WeightFormat*> ChooseFormat(const FormatTable& kernels, Isa isa,
                                                 const FormatRequest& request) {
  if (request.quantization != Quantization::kNone) {
    if (request.wanted == "auto" || request.wanted == "plain") {
      return &FormatOf(request.quantization == Quantization::kInt4 ? FormatId::kInt4
                                                                   : FormatId::kInt8);
    }
    return BadOption("cpu-weights", request.wanted,
                     "auto with --quantize " + std::string(QuantizationName(request.quantization)));
  }
  for (const FormatId id : kPreferred) {
    const bool wanted = request.wanted == "auto" || request.wanted == FormatOf(id).name();
    if (wanted && kernels[id].gemm != nullptr) return &FormatOf(id);
  }
  std::string accepted = Available(kernels);
  const auto known =
      std::find_if(std::begin(kPreferred), std::end(kPreferred),
                   [&request](FormatId id) { return FormatOf(id).name() == request.wanted; });
  if (known != std::end(kPreferred)) {
    accepted += request.dtype == DType::kBFloat16
                    ? " on " + std::string(IsaName(isa))
                    : " for a model in " + std::string(DTypeName(request.dtype));
    accepted += ": " + request.wanted + " needs bfloat16 weights and " +
                std::string(FormatOf(*known).Needs());
  }
  return BadOption("cpu-weights", request.wanted, accepted);
}

void WidenRow(const std::byte* from, DType dtype, std::size_t count, float* to) {
  if (dtype == DType::kFloat32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

float ReadElement(const void* data, std::size_t index, DType dtype) {
  if (dtype == DType::kFloat32) return static_cast<const float*>(data)[index];
  const std::uint32_t bits = static_cast<const std::uint16_t*>(data)[index];
  return std::bit_cast<float>(bits << 16);
}

}  // namespace penstock::shard::cpu
