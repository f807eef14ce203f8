#include "shard/app/backend_choice.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/bad_option.h"
#include "common/free_memory.h"
#include "common/log.h"
#include "common/status.h"
#include "shard/app/reference_choice.h"
#include "shard/backend/cpu/cpu_backend.h"
#include "shard/backend/cpu/threads/numa.h"
#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard {
namespace {

// With fewer weights per thread, the barriers cost more than another thread gains.
constexpr std::uint64_t kWeightBytesPerThread = std::uint64_t{2} << 20;

std::string NoQuantization(Quantization quantization) {
  return "--quantize " + std::string(QuantizationName(quantization)) +
         " needs backend cpu on a CPU, which quantises weights while it packs them";
}
constexpr const char* kNoKvType =
    "--kv-cache-dtype must be that of the model with backend reference; backend cpu has others";

CpuTypes TypesOf(const BackendChoiceOptions& options, const Model& model) {
  return {model.dtype, model.quantization, model.kv_type, options.weight_format};
}

absl::StatusOr<std::uint64_t> PackedBytes(const BackendChoiceOptions& options, const Model& model) {
  const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
  return CpuWeightBytes(model.program, source, TypesOf(options, model));
}

std::uint32_t Threads(const BackendChoiceOptions& options, const Model& model) {
  const std::uint64_t bytes = PackedBytes(options, model).value_or(0);
  const std::uint64_t useful = std::max<std::uint64_t>(1, bytes / kWeightBytesPerThread);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>({useful, options.cpu_threads, cpu::kMostThreads}));
}

cpu::ThreadPlacement PlacementFor(const BackendChoiceOptions& options, std::uint32_t threads) {
  const auto nodes = cpu::ReadNodes("/sys", cpu::CpusOfThisThread());
  return cpu::PlaceThreads(nodes, threads, {options.local_rank, options.local_ranks});
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCpu(const BackendChoiceOptions& options,
                                                 const Model& model, const LoadProgress& progress) {
  CpuOptions cpu;
  cpu.program = model.program;
  const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
  cpu.source = &source;
  cpu.progress = progress;
  cpu.weights_cache = options.weights_cache;
  cpu.weights_cache_bytes = options.weights_cache_bytes;
  cpu.dtype = model.dtype;
  cpu.block_size = options.block_size;
  cpu.quantization = model.quantization;
  cpu.kv_type = model.kv_type;
  cpu.weight_format = options.weight_format;
  cpu.threads = Threads(options, model);
  cpu.placement = PlacementFor(options, cpu.threads);
  if (const std::string text = cpu.placement.Describe(); !text.empty()) log::Info(text);
  cpu.free_memory = [ranks = options.local_ranks] {
    return FreeMemory().value_or(FreeBytes{}).bytes / std::max(1u, ranks);
  };
  return MakeCpuBackend(std::move(cpu));
}

struct Choice {
  bool cpu = false;     // else reference
  std::string missing;  // why cpu was not chosen
};

absl::StatusOr<Choice> Choose(const BackendChoiceOptions& options, const Model& model) {
  const bool quantized = model.quantization != Quantization::kNone;
  if (model.quantization == Quantization::kFp8) {
    return BadOption("quantize", "fp8", "int8 or int4 on a CPU; fp8 is for --device cuda");
  }
  if (model.kv_type == KvType::kFp8) {
    return BadOption("kv-cache-dtype", "fp8_e4m3fn",
                     "auto, float32, bfloat16 or int8 on a CPU; fp8_e4m3fn is for --device cuda");
  }
  const bool other_cells = model.kv_type != KvType::kAuto;
  if (options.wanted == "reference") {
    PENSTOCK_RETURN_IF_ERROR(CheckReference());
    if (quantized) return absl::UnimplementedError(NoQuantization(model.quantization));
    if (other_cells) return absl::UnimplementedError(kNoKvType);
    if (options.weight_format == "auto") return Choice{};
    return BadOption("cpu-weights", options.weight_format,
                     "auto with --backend reference: it is for backend cpu");
  }
  const bool vectors = model.pooling.has_value();
  const absl::Status runs =
      CheckCpuBackend(model.program, TypesOf(options, model), options.block_size);
  if (runs.ok()) return Choice{.cpu = true};
  const bool bad_option = absl::IsInvalidArgument(runs) || absl::IsOutOfRange(runs);
  if (options.wanted == "cpu" || vectors || bad_option) return runs;
  if (quantized) {
    return absl::UnimplementedError(NoQuantization(model.quantization) + "; " + Message(runs));
  }
  if (other_cells) {
    return absl::UnimplementedError(std::string(kNoKvType) + "; " + Message(runs));
  }
  if (const absl::Status reference = CheckReference(); !reference.ok()) {
    return absl::UnimplementedError(Message(runs) + "; " + Message(reference));
  }
  return Choice{.missing = Message(runs)};
}

absl::StatusOr<std::unique_ptr<Backend>> Make(const BackendChoiceOptions& options,
                                              const Model& model, const LoadProgress& progress) {
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(options, model));
  if (choice.cpu) return MakeCpu(options, model, progress);
  if (!choice.missing.empty()) {
    log::Warn(choice.missing + "; the slower reference backend runs instead");
  }
  return MakeReference({.block_size = options.block_size, .cpu_threads = options.cpu_threads},
                       model, progress);
}

}  // namespace

BackendFactory BackendChoice(BackendChoiceOptions options) {
  return [options = std::move(options)](const Model& model, const LoadProgress& progress) {
    return Make(options, model, progress);
  };
}

absl::StatusOr<std::uint64_t> WeightBytesOf(const BackendChoiceOptions& options,
                                            const Model& model) {
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(options, model));
  return choice.cpu ? PackedBytes(options, model) : model.WeightBytes();
}

absl::StatusOr<std::string> DescribeChoice(const BackendChoiceOptions& options,
                                           const Model& model) {
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(options, model));
  if (choice.cpu) {
    const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
    PENSTOCK_ASSIGN_OR_RETURN(std::string text,
                              DescribeCpuBackend(model.program, source, TypesOf(options, model)));
    const std::string placed = PlacementFor(options, Threads(options, model)).Describe();
    return placed.empty() ? text : text + ", " + placed;
  }
  return choice.missing.empty() ? "reference" : "reference: " + choice.missing;
}

}  // namespace penstock::shard
