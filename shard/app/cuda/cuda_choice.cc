#include "shard/app/cuda/cuda_choice.h"

#include <string>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/app/reference_choice.h"
#include "shard/backend/cuda/cuda_backend.h"
#include "shard/backend/cuda/device_weights.h"
#include "shard/backend/cuda/program_check.h"

namespace penstock::shard::cuda {
namespace {

// Whether weights, K and V have the type of the model.
bool IsPlain(const Model& model) {
  return model.quantization == Quantization::kNone && model.kv_type == KvType::kAuto;
}

absl::Status CudaHasAll(const CudaChoiceOptions& options, const Model& model) {
  if (options.padded) {
    return absl::UnimplementedError(
        "backend cuda reads K/V through block tables only; `kv-layout` padded needs backend "
        "reference");
  }
  if (options.contrastive) {
    return absl::UnimplementedError(
        "backend cuda has no contrastive search; `contrastive-search` needs backend reference");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckCudaBackend(model.program, model.dtype));
  PENSTOCK_RETURN_IF_ERROR(CheckQuantization(model.quantization, model.dtype));
  PENSTOCK_RETURN_IF_ERROR(CheckKvType(
      model.kv_type, AttentionKindOf(model.dtype, HeadsOf(model.program), options.block_size)));
  return options.batch_invariant ? CheckBatchInvariant(model.program, model.dtype)
                                 : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Backend>> MakeReference(const CudaChoiceOptions& options,
                                                       const Model& model,
                                                       const LoadProgress& progress) {
  if (!IsPlain(model)) {
    return absl::UnimplementedError(
        "`quantize` and `kv-cache-dtype` need backend cuda on a GPU, which has other types than "
        "that of the model");
  }
  return shard::MakeReference({.device = {Device::Kind::kCuda, 0},
                               .stream = options.stream,
                               .block_size = options.block_size},
                              model, progress);
}

absl::StatusOr<std::unique_ptr<Backend>> Make(const CudaChoiceOptions& options, Gpu& gpu,
                                              const Model& model, const LoadProgress& progress) {
  if (options.wanted == "reference") return MakeReference(options, model, progress);
  const absl::Status has_all = CudaHasAll(options, model);
  if (has_all.ok()) {
    CudaOptions cuda;
    cuda.program = model.program;
    const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
    cuda.source = &source;
    cuda.progress = progress;
    cuda.dtype = model.dtype;
    cuda.block_size = options.block_size;
    cuda.batch_invariant = options.batch_invariant;
    cuda.quantization = model.quantization;
    cuda.kv_type = model.kv_type;
    cuda.parts = options.parts;
    return MakeCudaBackend(std::move(cuda), gpu);
  }
  if (options.wanted == "cuda") return has_all;
  if (!IsPlain(model)) return has_all;
  log::Warn(Message(has_all) + "; the slower reference backend runs instead");
  return MakeReference(options, model, progress);
}

}  // namespace

absl::StatusOr<std::uint64_t> CudaWeightBytes(const Model& model) {
  return DeviceWeightBytes(model.program, model.weight_plan, model.dtype,
                           FormOf(model.quantization));
}

BackendFactory CudaChoice(CudaChoiceOptions options, Gpu& gpu) {
  return [options = std::move(options), &gpu](const Model& model, const LoadProgress& progress) {
    return Make(options, gpu, model, progress);
  };
}

}  // namespace penstock::shard::cuda
