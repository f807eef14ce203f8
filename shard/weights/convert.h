// Conversion between stored element types: round to nearest, ties to even.
#pragma once

#include <cstddef>

#include "common/dtype.h"

namespace penstock::shard {

// `from` and `to` must not overlap unless the types are equal.
void ConvertElements(const void* from, DType from_type, void* to, DType to_type, std::size_t count);

}  // namespace penstock::shard
