#include "shard/backend/cuda/kernels/tensor_attention.cuh"

namespace penstock::shard::cuda {

absl::Status AttendOnTensorCores(const AttentionArgs& args, Stream stream) {
  if (args.IsAdjusted()) return AttendAdjusted(args, stream);
  switch (args.shape.head_dim) {
    case 16:
      return on_tensor_cores::LaunchBoth<16, false>(args, stream);
    case 64:
      return on_tensor_cores::LaunchBoth<64, false>(args, stream);
    case 80:
      return on_tensor_cores::LaunchBoth<80, false>(args, stream);
    case 96:
      return on_tensor_cores::LaunchBoth<96, false>(args, stream);
    case 128:
      return on_tensor_cores::LaunchBoth<128, false>(args, stream);
    case 256:
      return on_tensor_cores::LaunchBoth<256, false>(args, stream);
    default:
      return absl::InternalError("attention on tensor cores was planned for a head_dim without it");
  }
}

}  // namespace penstock::shard::cuda
