// Seeded values that are nearly normal, fast enough for billions, and the same bits on every
// machine (integer arithmetic and one multiplication each).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/dtype.h"

namespace penstock::make_model {

class RandomValues {
 public:
  // mean + scale * n. The stream depends on `seed` and `tensor` only, not on the order of tensors.
  RandomValues(std::uint64_t seed, std::string_view tensor, float mean, float scale, DType dtype);

  // The next values, as raw elements of dtype; out.size() is a multiple of 4 elements except at the
  // end of the tensor.
  void Fill(std::span<std::byte> out);

 private:
  DType dtype_;
  std::uint64_t state_;
  std::vector<std::byte> table_;  // 65,536 elements of dtype
};

}  // namespace penstock::make_model
