#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {
namespace {

bool kernels_overlap = false;

}  // namespace

void LetKernelsOverlap(bool overlap) { kernels_overlap = overlap; }
bool KernelsOverlap() { return kernels_overlap; }

}  // namespace penstock::shard::cuda
