// Kernels for processors with AVX-512 (F, BW, DQ, VL).
#include "shard/backend/cpu/kernels/simd_avx512.h"
//
#include "shard/backend/cpu/kernels/tables.h"
#include "shard/backend/cpu/kernels/vector_math.h"
//
#include "shard/backend/cpu/kernels/products.h"
//
#include "shard/backend/cpu/kernels/attention.h"
#include "shard/backend/cpu/kernels/cells.h"
#include "shard/backend/cpu/kernels/kv_write.h"
#include "shard/backend/cpu/kernels/latent.h"
#include "shard/backend/cpu/kernels/norm_rope.h"
//
#include "shard/backend/cpu/kernels/delta_net.h"
#include "shard/backend/cpu/kernels/lora.h"
#include "shard/backend/cpu/kernels/scaled_cells.h"
#include "shard/backend/cpu/kernels/similarity.h"
#include "shard/backend/cpu/kernels/table_of.h"

namespace penstock::shard::cpu {

// Without formats: FindKernels adds them.
constexpr Kernels kAvx512Float32 = TableOf<Float32Product, WidenedCells>(
    Isa::kAvx512, DType::kFloat32, DType::kFloat32, Float32Product::kPack);
constexpr Kernels kAvx512BFloat16 = TableOf<WidenedProduct, WidenedCells>(
    Isa::kAvx512, DType::kBFloat16, DType::kFloat32, WidenedPairs::kPack);

}  // namespace penstock::shard::cpu
