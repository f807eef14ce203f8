#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "shard/backend/cpu/formats/formats.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard::cpu {
namespace {

static_assert(kInt4Group == kInt4Columns);

constexpr float kInt4Largest = 15.0f;
constexpr float kLeastHalf = 0x1p-14f;  // smaller ones would be subnormal: they count as 0
constexpr std::uint32_t kHalfBias = 112u << 10;

// A float16 of a number in [0, 2^15], and back.
std::uint16_t ToHalf(float x) {
  if (x < kLeastHalf) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>(((bits + 0xfff + (bits >> 13 & 1)) >> 13) - kHalfBias);
}
float FromHalf(std::uint16_t half) {
  return half == 0 ? 0.0f : std::bit_cast<float>((half + kHalfBias) << 13);
}

// The integers nearest to x, ties to even, within [0, 15]; 0 for NaN. Compilers do not make vectors
// of such comparisons.
__m128i Nibbles(__m128 x) {
  const __m128 kept = _mm_min_ps(_mm_max_ps(x, _mm_setzero_ps()), _mm_set1_ps(kInt4Largest));
  return _mm_cvtps_epi32(kept);
}
std::uint8_t Nibble(float x) {
  return static_cast<std::uint8_t>(_mm_cvtsi128_si32(Nibbles(_mm_set1_ps(x))));
}

float LeastOf(__m128 x) {
  const __m128 two = _mm_min_ps(x, _mm_movehl_ps(x, x));
  return std::min(_mm_cvtss_f32(two), _mm_cvtss_f32(_mm_shuffle_ps(two, two, 1)));
}

// One output: a value for each K, and a scale and a zero point for each group.
class Int4Column {
 public:
  explicit Int4Column(std::size_t inner)
      : inner_(inner),
        groups_((inner + kInt4Group - 1) / kInt4Group),
        row_(groups_ * kInt4Group),
        least_(groups_),
        scales_(groups_),
        values_(row_.size()),
        zeros_(groups_),
        halves_(groups_) {}

  std::size_t groups() const { return groups_; }
  const std::uint8_t* values() const { return values_.data(); }
  std::uint8_t zero(std::size_t group) const { return zeros_[group]; }
  // The group's scale is this float16 times scale().
  std::uint16_t half(std::size_t group) const { return halves_[group]; }
  // A power of two; NaN if a weight is not finite.
  float scale() const { return scale_; }

  void Quantize(const std::byte* row, DType dtype) {
    WidenRow(row, dtype, inner_, row_.data());
    for (std::size_t group = 0; group < groups_; ++group) ChooseScale(group);
    RoundScales();
    for (std::size_t group = 0; group < groups_; ++group) RoundGroup(group);
  }

  // A row of WeightSource::ReadInt4Rows. Its scales keep eleven bits: all that files have, if in
  // bfloat16 or float16. A negative one is turned: (q - z) s = ((15 - q) - (15 - z)) (-s).
  void Keep(const std::byte* row) {
    const auto* numbers = reinterpret_cast<const float*>(row);
    for (std::size_t group = 0; group < groups_; ++group) {
      const float scale = numbers[inner_ + group];
      const float zero = numbers[inner_ + groups_ + group];
      const bool turned = scale < 0;
      scales_[group] = std::fabs(scale);
      zeros_[group] = Nibble(turned ? kInt4Largest - zero : zero);
      const std::size_t end = std::min(inner_, (group + 1) * kInt4Group);
      for (std::size_t k = group * kInt4Group; k < end; ++k) {
        values_[k] = Nibble(turned ? kInt4Largest - numbers[k] : numbers[k]);
      }
    }
    RoundScales();
  }

 private:
  // It spans the group's weights and 0 in 15 steps.
  void ChooseScale(std::size_t group) {
    const float* from = &row_[group * kInt4Group];  // zeros after the last weight
    __m128 least = _mm_setzero_ps(), most_negative = least, not_finite = least;
    for (std::size_t i = 0; i < kInt4Group; i += 4) {
      const __m128 x = _mm_loadu_ps(from + i);
      least = _mm_min_ps(x, least);
      most_negative = _mm_min_ps(_mm_sub_ps(_mm_setzero_ps(), x), most_negative);
      not_finite = _mm_add_ps(not_finite, _mm_mul_ps(x, _mm_setzero_ps()));
    }
    least_[group] = LeastOf(least);
    const float span = -LeastOf(most_negative) - least_[group];
    // NaN if a weight is not finite.
    const __m128 bad = _mm_add_ps(not_finite, _mm_movehl_ps(not_finite, not_finite));
    scales_[group] =
        span / kInt4Largest + _mm_cvtss_f32(bad) + _mm_cvtss_f32(_mm_shuffle_ps(bad, bad, 1));
  }

  void RoundScales() {
    float largest = 0, not_finite = 0;
    for (const float scale : scales_) {
      largest = std::max(largest, scale);
      not_finite += scale * 0.0f;
    }
    constexpr float kNothing = 0x1p-100f;
    scale_ = std::ldexp(1.0f, largest > kNothing ? std::ilogb(largest) - 14 : 0) + not_finite;
    for (std::size_t group = 0; group < groups_; ++group) {
      halves_[group] = std::isnan(scale_) ? std::uint16_t{0} : ToHalf(scales_[group] / scale_);
    }
  }

  void RoundGroup(std::size_t group) {
    const std::uint16_t half = halves_[group];
    const float inverse = half == 0 ? 0.0f : 1.0f / (FromHalf(half) * scale_);
    zeros_[group] = Nibble(-least_[group] * inverse);
    const __m128 factor = _mm_set1_ps(inverse), zero = _mm_set1_ps(zeros_[group]);
    const float* from = &row_[group * kInt4Group];
    const auto rounded = [&](std::size_t i) {
      return Nibbles(_mm_add_ps(_mm_mul_ps(_mm_loadu_ps(from + i), factor), zero));
    };
    for (std::size_t i = 0; i < kInt4Group; i += 16) {
      const __m128i first = _mm_packs_epi32(rounded(i), rounded(i + 4));
      const __m128i second = _mm_packs_epi32(rounded(i + 8), rounded(i + 12));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(&values_[group * kInt4Group + i]),
                       _mm_packus_epi16(first, second));
    }
  }

  const std::size_t inner_;
  const std::size_t groups_;
  std::vector<float> row_, least_, scales_;
  std::vector<std::uint8_t> values_, zeros_;
  std::vector<std::uint16_t> halves_;
  float scale_ = 0;
};

// Where the parts of a panel lie.
struct Int4Panel {
  std::size_t columns;

  std::size_t HeaderBytes() const { return columns * kInt4HeaderBytes; }
  std::size_t StepBytes() const { return columns * kInt4Pack / 2; }
  std::size_t Bytes(std::size_t steps) const {
    return steps * StepBytes() + (steps + kSteps - 1) / kSteps * HeaderBytes();
  }
  std::size_t Header(std::size_t group) const { return Bytes(group / kGroups * kSteps); }
  std::size_t Scale(std::size_t group, std::size_t column) const {
    return Header(group) + (group % kGroups * columns + column) * sizeof(std::uint16_t);
  }
  // The zero points of columns c and columns / 2 + c share a byte.
  std::size_t Zero(std::size_t group, std::size_t column) const {
    return Header(group) + kGroups * columns * sizeof(std::uint16_t) +
           group % kGroups * columns / 2 + column % (columns / 2);
  }
  int ZeroShift(std::size_t column) const { return column < columns / 2 ? 0 : 4; }
  // Values k and k + 4 of the eight of a step share a byte.
  std::size_t Values(std::size_t step, std::size_t column) const {
    return Bytes(step / kSteps * kSteps) + HeaderBytes() + step % kSteps * StepBytes() +
           column * kInt4Pack / 2;
  }

 private:
  static constexpr std::size_t kSteps = kIntegerGroup / kInt4Pack;    // with one header
  static constexpr std::size_t kGroups = kIntegerGroup / kInt4Group;  // likewise
};

void StoreColumn(const Int4Column& from, const Int4Panel& panel, const PanelShape& shape,
                 std::size_t column, std::byte* out) {
  for (std::size_t group = 0; group < from.groups(); ++group) {
    const std::uint16_t half = from.half(group);
    std::memcpy(out + panel.Scale(group, column), &half, sizeof half);
    out[panel.Zero(group, column)] |= std::byte{from.zero(group)} << panel.ZeroShift(column);
  }
  for (std::size_t step = 0; step < shape.Steps(); ++step) {
    const std::uint8_t* values = from.values() + step * kInt4Pack;
    std::byte* to = out + panel.Values(step, column);
    for (std::size_t i = 0; i < kInt4Pack / 2; ++i) {
      to[i] = std::byte(values[i] | values[i + kInt4Pack / 2] << 4);
    }
  }
}

class Int4 final : public WeightFormat {
 public:
  FormatId id() const override { return FormatId::kInt4; }
  std::string_view name() const override { return "int4"; }
  std::string_view backend_suffix() const override { return "/int4"; }
  std::string_view Needs() const override { return ""; }

  std::size_t PanelBytes(const PanelShape& shape) const override {
    return Int4Panel{shape.columns}.Bytes(shape.Steps());
  }
  bool has_column_scales() const override { return true; }
  bool TakesInt4Rows() const override { return true; }

  bool PackPanel(const PanelSource& rows, const PanelShape& shape, const FormatKernels&,
                 const PanelMemory& panel, Overflow&) const override {
    std::memset(panel.data, 0, PanelBytes(shape));
    Int4Column column(shape.inner);
    for (std::size_t c = 0; c < shape.columns; ++c) {
      panel.scales[c] = 0;
      if (rows[c] == nullptr) continue;
      if (shape.int4_rows) {
        column.Keep(rows[c]);
      } else {
        column.Quantize(rows[c], shape.dtype);
      }
      panel.scales[c] = column.scale();
      StoreColumn(column, Int4Panel{shape.columns}, shape, c, panel.data);
    }
    return true;
  }
  void UnpackColumn(const PanelView& view, const PanelShape& shape, std::size_t column,
                    float* out) const override {
    const Int4Panel panel{shape.columns};
    for (std::size_t k = 0; k < shape.inner; ++k) {
      const std::size_t group = k / kInt4Group, place = k % kInt4Pack % (kInt4Pack / 2);
      std::uint16_t half;
      std::memcpy(&half, view.data + panel.Scale(group, column), sizeof half);
      const auto pair =
          std::to_integer<int>(view.data[panel.Values(k / kInt4Pack, column) + place]);
      const int value = pair >> (k % kInt4Pack < kInt4Pack / 2 ? 0 : 4) & 15;
      const auto zeros = std::to_integer<int>(view.data[panel.Zero(group, column)]);
      const int zero = zeros >> panel.ZeroShift(column) & 15;
      out[k] = static_cast<float>(value - zero) * (FromHalf(half) * view.scales[column]);
    }
  }
};

}  // namespace

const WeightFormat& Int4Format() {
  static const Int4 format;
  return format;
}

}  // namespace penstock::shard::cpu
