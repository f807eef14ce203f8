// A dense array that another object owns: what crosses the border between the parts of the shard
// that know libtorch and those that do not. A view is a value; copying it copies no data. Who keeps
// the memory alive, and until when, is said where a view is handed out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/dtype.h"

namespace penstock::shard {

struct Device {
  enum class Kind : std::uint8_t { kCpu, kCuda };
  Kind kind = Kind::kCpu;
  int index = 0;  // of the CUDA device
  friend bool operator==(const Device&, const Device&) = default;
};

struct TensorView {
  static constexpr std::size_t kMaxRank = 4;

  void* data = nullptr;
  std::array<std::int64_t, kMaxRank> shape{};  // the first `rank` count
  std::uint8_t rank = 0;
  DType dtype = DType::kFloat32;
  Device device;

  // Row-major [rows, columns] without gaps.
  static TensorView Matrix(void* data, std::int64_t rows, std::int64_t columns, DType dtype,
                           Device device = {}) {
    return {data, {rows, columns}, 2, dtype, device};
  }
  static TensorView Vector(void* data, std::int64_t size, DType dtype, Device device = {}) {
    return {data, {size}, 1, dtype, device};
  }

  std::int64_t Elements() const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) count *= shape[i];
    return count;
  }
  std::size_t Bytes() const { return static_cast<std::size_t>(Elements()) * DTypeBytes(dtype); }
};

}  // namespace penstock::shard
