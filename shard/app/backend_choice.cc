#include "shard/app/backend_choice.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/reference/reference_backend.h"

namespace penstock::shard {
namespace {

// Below this much of the weights per thread, meeting the others costs more than computing alone.
constexpr std::uint64_t kWeightBytesPerThread = std::uint64_t{2} << 20;

constexpr const char* kNoPaddedLayout =
    "backend cpu reads K/V through block tables only; `kv-layout` padded needs backend reference";

absl::StatusOr<std::unique_ptr<Backend>> MakeCpu(const BackendChoiceOptions& options,
                                                 const Model& model, LoadedWeights weights) {
  const std::uint64_t useful =
      std::max<std::uint64_t>(1, model.WeightBytes() / kWeightBytesPerThread);
  CpuOptions cpu;
  cpu.program = model.program;
  cpu.weights = std::move(weights);
  cpu.dtype = model.dtype;
  cpu.block_size = options.block_size;
  cpu.threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(useful, options.cpu_threads));
  return MakeCpuBackend(std::move(cpu));
}

absl::StatusOr<std::unique_ptr<Backend>> MakeReference(const BackendChoiceOptions& options,
                                                       const Model& model, LoadedWeights weights) {
  ReferenceOptions reference;
  reference.program = model.program;
  reference.weights = std::move(weights);
  reference.dtype = model.dtype;
  reference.block_size = options.block_size;
  reference.cpu_threads = options.cpu_threads;
  return MakeReferenceBackend(std::move(reference));
}

absl::StatusOr<std::unique_ptr<Backend>> Make(const BackendChoiceOptions& options,
                                              const Model& model, LoadedWeights weights) {
  if (options.wanted == "reference") return MakeReference(options, model, std::move(weights));
  const absl::Status runs = options.padded
                                ? absl::UnimplementedError(kNoPaddedLayout)
                                : CheckCpuBackend(model.program, model.dtype, options.block_size);
  if (runs.ok()) return MakeCpu(options, model, std::move(weights));
  if (options.wanted == "cpu" || absl::IsInvalidArgument(runs)) return runs;
  log::Warn(Message(runs) + "; the slower reference backend runs instead");
  return MakeReference(options, model, std::move(weights));
}

}  // namespace

BackendFactory BackendChoice(BackendChoiceOptions options) {
  return
      [options = std::move(options)](
          const Model& model, LoadedWeights weights) -> absl::StatusOr<std::unique_ptr<Backend>> {
        auto backend = Make(options, model, std::move(weights));
        if (backend.ok()) log::Info("backend: " + (*backend)->Name());
        return backend;
      };
}

}  // namespace penstock::shard
