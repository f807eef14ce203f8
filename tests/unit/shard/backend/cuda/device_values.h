// A buffer of elements of one dtype that a kernel reads and writes and a test reads as doubles.
#pragma once

#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>

#include "common/dtype.h"
#include "tests/unit/shard/backend/cuda/test_gpu.h"

namespace penstock {

// Names the cases of a suite that runs on each.
inline void PrintTo(DType dtype, std::ostream* out) { *out << DTypeName(dtype); }

}  // namespace penstock

namespace penstock::shard::cuda {

class Values {
 public:
  static Values Zeros(std::size_t count, DType dtype) { return Values(count, dtype); }

  template <class Generator>
  static Values Random(std::size_t count, DType dtype, float scale, Generator& generator) {
    std::uniform_real_distribution<float> draw(-scale, scale);
    Values values(count, dtype);
    for (std::size_t i = 0; i < count; ++i) values.Set(i, draw(generator));
    return values;
  }

  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size() / DTypeBytes(dtype_); }

  double operator[](std::size_t i) const {
    float value = 0;
    if (dtype_ == DType::kFloat32) {
      std::memcpy(&value, &bytes_[4 * i], 4);
    } else {
      std::uint16_t half = 0;
      std::memcpy(&half, &bytes_[2 * i], 2);
      const std::uint32_t wide = std::uint32_t{half} << 16;
      std::memcpy(&value, &wide, 4);
    }
    return value;
  }

  // bfloat16: cut off, which is exact enough for inputs.
  void Set(std::size_t i, float value) {
    if (dtype_ == DType::kFloat32) {
      std::memcpy(&bytes_[4 * i], &value, 4);
      return;
    }
    std::uint32_t wide = 0;
    std::memcpy(&wide, &value, 4);
    const auto half = static_cast<std::uint16_t>(wide >> 16);
    std::memcpy(&bytes_[2 * i], &half, 2);
  }

  // To the nearest element, of two as near to the even one.
  void SetRounded(std::size_t i, float value) {
    std::uint32_t wide = 0;
    std::memcpy(&wide, &value, 4);
    if (dtype_ == DType::kBFloat16) wide += 0x7fff + ((wide >> 16) & 1);
    std::memcpy(&value, &wide, 4);
    Set(i, value);
  }

 private:
  Values(std::size_t count, DType dtype) : dtype_(dtype), bytes_(count * DTypeBytes(dtype)) {}

  DType dtype_;
  SharedVector<unsigned char> bytes_;
};

}  // namespace penstock::shard::cuda
