// The highest rates of this machine, measured now: reading memory and multiplying. Rooflines are
// computed from them, so they are measured together with every number that is compared with a
// roofline.
#pragma once

#include <cstddef>

#include "common/dtype.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

class MachinePeaks {
 public:
  // Reads up to `most_bytes` at a time.
  MachinePeaks(std::uint32_t threads, std::size_t most_bytes);

  // GB/s of reading `bytes` in order with all threads, the best of some passes. Data that fits a
  // cache is read from there the second time, as the weights of a small model are.
  double ReadBandwidth(std::size_t bytes);

  // GFLOP/s of the backend's own matrix product of many rows, with weights of `dtype` stored so.
  double GemmPeak(DType dtype, FormatId format);

  // GFLOP/s of the same instructions with all operands in registers. 0 with AVX2, and for integer
  // weights without AVX512_VNNI.
  double RegisterPeak(FormatId format);

 private:
  WorkerPool pool_;
  MemoryRegion memory_;
};

}  // namespace penstock::shard::cpu
