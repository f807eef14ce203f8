#include "shard/backend/cuda/kernels/tensor_attention.cuh"

namespace penstock::shard::cuda {

absl::Status AttendOnTensorCores(const AttentionArgs& args, Stream stream) {
  if (args.IsAdjusted()) return AttendAdjusted(args, stream);
  switch (args.shape.head_dim) {
    case 16:
      return on_tensor_cores::LaunchFor<16, false>(args, stream);
    case 64:
      return on_tensor_cores::LaunchFor<64, false>(args, stream);
    case 80:
      return on_tensor_cores::LaunchFor<80, false>(args, stream);
    case 96:
      return on_tensor_cores::LaunchFor<96, false>(args, stream);
    case 128:
      return on_tensor_cores::LaunchFor<128, false>(args, stream);
    case 256:
      return on_tensor_cores::LaunchFor<256, false>(args, stream);
    default:
      return absl::InternalError("attention on tensor cores was planned for a head_dim without it");
  }
}

}  // namespace penstock::shard::cuda
