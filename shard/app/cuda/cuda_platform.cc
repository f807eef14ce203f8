#include <cstdlib>
#include <utility>

#include "common/bad_option.h"
#include "common/log.h"
#include "common/status.h"
#include "shard/app/cuda/cuda_choice.h"
#include "shard/app/cuda/cuda_device.h"
#include "shard/app/cuda/visible_device.h"
#include "shard/app/platform.h"
#include "shard/backend/cuda/cuda_gpu.h"
#include "shard/parallel/nccl/nccl_api.h"

namespace penstock::shard {
namespace {

// The objects that the device uses, in the order of destruction.
struct OpenDevice {
  std::unique_ptr<cuda::CudaGpu> gpu;
  std::unique_ptr<NcclApi> nccl;
  std::unique_ptr<cuda::CudaDevice> device;
};

absl::Status CheckOptions(const options::Values& values) {
  if (values.GetString("device") == "cpu") {
    return BadOption("device", "cpu", "auto or cuda: penstock-shard serves CPUs");
  }
  if (values.GetString("engine") == "transformers") {
    return BadOption("engine", "transformers", "penstock in penstock-shard-cuda");
  }
  if (values.GetString("backend") == "cpu") {
    return BadOption("backend", "cpu", "auto, cuda or reference on a GPU");
  }
  return absl::OkStatus();
}

// For finding out which part of the backend is at fault on a device that gives wrong answers.
absl::StatusOr<cuda::CudaParts> PartsFromEnvironment() {
  constexpr char kVariable[] = "PENSTOCK_CUDA_WITHOUT";
  const char* const without = std::getenv(kVariable);
  auto parts = cuda::PartsWithout(without == nullptr ? "" : without);
  if (!parts.ok()) return WithContext(parts.status(), kVariable);
  return parts;
}

absl::StatusOr<std::shared_ptr<OpenDevice>> Open(const options::Values& values,
                                                 const cuda::CudaParts& parts) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name,
                            cuda::DeviceOfRank(std::getenv("CUDA_VISIBLE_DEVICES"),
                                               static_cast<std::uint32_t>(values.GetInt("rank"))));
  ::setenv("CUDA_VISIBLE_DEVICES", name.c_str(), 1);
  auto gpu = cuda::CudaGpu::Open(0, parts);
  if (!gpu.ok()) {
    return WithContext(gpu.status(),
                       "--device cuda needs an NVIDIA GPU and a driver for CUDA 13 "
                       "(CUDA_VISIBLE_DEVICES=" +
                           name + ")");
  }
  auto open = std::make_shared<OpenDevice>();
  open->gpu = *std::move(gpu);
  open->nccl = MakeNcclLibrary();
  open->device = std::make_unique<cuda::CudaDevice>(
      cuda::CudaDeviceFacts{open->gpu->Uuid(), open->gpu->TotalBytes(),
                            values.GetDouble("cuda-memory-fraction")},
      *open->gpu, *open->gpu, *open->nccl);
  log::Info("device: " + open->gpu->Description() + ", " + name + " of CUDA_VISIBLE_DEVICES");
  return open;
}

}  // namespace

absl::StatusOr<Platform> OpenPlatform(const options::Values& values,
                                      const std::string& /*kept_folder*/) {
  PENSTOCK_RETURN_IF_ERROR(CheckOptions(values));
  cuda::CudaChoiceOptions choice;
  PENSTOCK_ASSIGN_OR_RETURN(choice.parts, PartsFromEnvironment());
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<OpenDevice> open, Open(values, choice.parts));
  choice.wanted = values.GetString("backend");
  choice.block_size = static_cast<std::uint32_t>(values.GetInt("block-size"));
  choice.padded = values.GetString("kv-layout") == "padded";
  choice.contrastive = values.GetBool("contrastive-search");
  choice.batch_invariant = values.GetBool("batch-invariant");
  choice.stream = open->gpu->NativeStream();
  Platform platform;
  platform.device = {Device::Kind::kCuda, 0};
  platform.make_backend = [open, make = cuda::CudaChoice(std::move(choice), *open->gpu)](
                              const Model& model, const LoadProgress& progress) {
    return make(model, progress);
  };
  platform.weight_bytes = cuda::CudaWeightBytes;
  platform.rank_device = std::shared_ptr<RankDevice>(open, open->device.get());
  return platform;
}

}  // namespace penstock::shard
