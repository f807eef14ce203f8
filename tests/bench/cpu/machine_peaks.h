// What this machine gives at most, measured now: reading memory, multiplying. Rooflines are made of
// it, so it is measured beside every number that is compared with one.
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

  // GB/s of reading `bytes` from front to back with all threads; the best of some passes. What fits
  // a cache comes from there the second time, as the weights of a small model do.
  double ReadBandwidth(std::size_t bytes);

  // GFLOP/s of the backend's own matrix product of many rows, with weights of `dtype` stored so.
  double ProductPeak(DType dtype, Storage storage);

  // GFLOP/s of multiplying registers alone, in the instructions of those products; 0 with AVX2 and
  // without AVX512_VNNI for weights of integers.
  double RegisterPeak(Storage storage);

 private:
  WorkerPool pool_;
  MemoryRegion memory_;
};

}  // namespace penstock::shard::cpu
