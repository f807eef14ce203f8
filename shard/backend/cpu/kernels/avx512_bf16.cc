// Kernels for processors that multiply pairs of bfloat16 (AVX512_BF16).
#include "shard/backend/cpu/kernels/simd_avx512.h"
//
#include "shard/backend/cpu/kernels/tables.h"
#include "shard/backend/cpu/kernels/vector_math.h"
//
#include "shard/backend/cpu/kernels/dot_product.h"
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
constexpr Kernels kAvx512DotBFloat16 = TableOf<DotProduct, DotProduct>(
    Isa::kAvx512Bf16, DType::kBFloat16, DType::kBFloat16, DotProduct::kPack);

}  // namespace penstock::shard::cpu
