// The product of int4 weights on processors with AVX512_VNNI. Internal to the including file.
#pragma once

#include "shard/backend/cpu/formats/kernels/int4.h"
#include "shard/backend/cpu/kernels/step_row.h"

namespace penstock::shard::cpu {
namespace {

// One instruction adds four products of bytes to an integer sum.
struct FoursOfInt4 : Int4Product {
  PENSTOCK_STEP_ROW("vpdpbusd")
  static Ints Whole(Ints sums) { return sums; }
};

}  // namespace
}  // namespace penstock::shard::cpu
