// Attention on tensor cores whose scores are more than scaled products. Kernels of their own, so
// that other models do not pay for them.
#include "shard/backend/cuda/kernels/tensor_attention.cuh"

namespace penstock::shard::cuda {

absl::Status AttendAdjusted(const AttentionArgs& args, Stream stream) {
  switch (args.shape.head_dim) {
    case 16:
      return on_tensor_cores::LaunchFor<16, true>(args, stream);
    case 64:
      return on_tensor_cores::LaunchFor<64, true>(args, stream);
    case 128:
      return on_tensor_cores::LaunchFor<128, true>(args, stream);
    case 256:
      return on_tensor_cores::LaunchFor<256, true>(args, stream);
    default:
      return absl::InternalError("adjusted scores were planned for a head_dim without them");
  }
}

}  // namespace penstock::shard::cuda
