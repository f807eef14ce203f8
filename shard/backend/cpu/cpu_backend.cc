#include "shard/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/backend/batch_check.h"
#include "shard/backend/cpu/adapters/cpu_adapter.h"
#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/delta/state_store.h"
#include "shard/backend/cpu/stages.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/step_runner.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/cache/padded/row_blocks.h"
#include "shard/model/rope_table.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard {
namespace cpu {
namespace {

FormatRequest RequestOf(const CpuTypes& types) {
  return {types.dtype, types.quantization, types.weight_format};
}

CpuTypes TypesOf(const CpuOptions& options) {
  return {options.dtype, options.quantization, options.kv_type, options.weight_format};
}

// The first bytes of a serving cache: enough for thousands of tokens.
constexpr std::size_t kPrefaultedFirst = std::size_t{128} << 20;

class CpuBackend final : public Backend {
 public:
  CpuBackend(const CpuOptions& options, const Kernels& kernels, const WeightFormat& format)
      : program_(options.program),
        block_size_(options.block_size),
        kv_type_(options.kv_type),
        kernels_(kernels),
        wanted_format_(format),
        free_memory_(options.free_memory),
        pool_(options.threads, options.placement) {}

  absl::Status Initialize(const CpuOptions& options);
  std::string Name() const override;
  absl::Status Prepare(const BackendLimits& limits, Communicator* communicator) override;
  std::uint32_t OwnThreads() const override { return pool_.threads(); }
  void ForEach(std::uint32_t items, const Work& work) override;
  // On several NUMA nodes the rows of a step lie on the nodes of the threads that compute them
  // first.
  bool TakesMemoryInSteps() const override { return pool_.placement().NodeCount() > 1; }
  bool HasAdapters() const override { return true; }
  absl::StatusOr<std::unique_ptr<BackendAdapter>> MakeAdapter(
      const LoraAdapter& adapter) const override {
    return CpuAdapter::Create(adapter, *weights_, kernels_);
  }
  absl::Status AllocateCache(const KvBlocks& blocks) override { return MakeCache(blocks, false); }
  absl::Status AllocateServingCache(const KvBlocks& blocks) override {
    return MakeCache(blocks, true);
  }
  RowStore row_store() const override { return RowStore::kBlocks; }
  absl::Status SetCells(std::uint32_t cells, std::uint32_t rows) override {
    PENSTOCK_RETURN_IF_ERROR(CheckCells(cells, program_));
    cells_ = cells;
    most_rows_ = rows;
    return absl::OkStatus();
  }
  absl::StatusOr<CellsArranged> ArrangeCells(std::span<const CellPart> parts) override;
  absl::Status SetSnapshots(std::uint32_t snapshots) override {
    snapshots_ = snapshots;
    return absl::OkStatus();
  }
  absl::Status SaveStates(std::span<const StateCopy> copies) override;
  absl::Status RestoreStates(std::span<const StateCopy> copies) override;
  absl::Status CopyBlocks(std::span<const BlockCopy> copies) override;
  absl::Status Execute(const RaggedBatch& batch) override;
  absl::Status Similarities(std::uint32_t segment, std::span<float> out) override;
  absl::Status CommitCandidates(std::span<const CandidateChoice> choices) override;
  absl::Status KeepDrafts(std::span<const DraftsKept> kept) override;
  absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) override;
  std::uint64_t MemoryBytes() const override;

 private:
  absl::Status MakeCache(const KvBlocks& blocks, bool serving);
  absl::Status GatherLogits(std::size_t first, std::size_t count);

  const Program program_;
  const std::uint32_t block_size_;
  const KvType kv_type_;
  const Kernels& kernels_;
  const WeightFormat& wanted_format_;
  const std::function<std::uint64_t()> free_memory_;
  WorkerPool pool_;
  std::optional<WeightStore> weights_;
  BackendLimits limits_;
  Communicator* communicator_ = nullptr;
  std::vector<RopeTable> ropes_;  // of program_.ropes
  StepBuffers buffers_;
  ExpertBuffers expert_buffers_;
  std::uint32_t cells_ = 0;  // of SetCells
  std::uint32_t most_rows_ = 0;
  std::uint32_t snapshots_ = 0;  // of SetSnapshots
  KvCache cache_;
  KvBlocks sequence_blocks_;  // of cache_; those of rows_ come after them
  RowBlocks rows_;
  std::vector<RaggedSegment> segments_;  // of the present step, with the blocks of rows
  StateStore states_;
  std::optional<StepRunner> runner_;
  std::size_t logit_count_ = 0;  // of the last step
};

absl::Status CpuBackend::Initialize(const CpuOptions& options) {
  const LoadedSource loaded(options.weights.views);
  WeightStore::Options store_options;
  store_options.source = options.source != nullptr ? options.source : &loaded;
  store_options.progress = options.progress;
  store_options.cache_folder = options.weights_cache;
  store_options.format = &wanted_format_;
  store_options.cache_most = options.weights_cache_bytes;
  PENSTOCK_ASSIGN_OR_RETURN(WeightStore store,
                            WeightStore::Create(program_, store_options, kernels_, pool_));
  weights_.emplace(std::move(store));
  return absl::OkStatus();
}

std::string BackendName(const Kernels& kernels, const WeightFormat& format, KvType kv_type) {
  std::string name = "cpu/" + std::string(IsaName(kernels.isa));
  name += format.backend_suffix();
  if (kv_type != KvType::kAuto) name += "/kv-" + std::string(KvTypeName(kv_type));
  return name;
}

std::string CpuBackend::Name() const { return BackendName(kernels_, weights_->format(), kv_type_); }

absl::Status CpuBackend::Prepare(const BackendLimits& limits, Communicator* communicator) {
  PENSTOCK_RETURN_IF_ERROR(CheckCommunicator(program_, communicator));
  runner_.reset();
  limits_ = limits;
  communicator_ = communicator;
  logit_count_ = 0;
  buffers_ = StepBuffers();
  const FormatKernels& format = kernels_.formats[weights_->format().id()];
  PENSTOCK_ASSIGN_OR_RETURN(buffers_,
                            StepBuffers::Create(program_, kernels_, format, limits, pool_));
  PENSTOCK_ASSIGN_OR_RETURN(
      expert_buffers_, ExpertBuffers::Create(program_, kernels_, format, limits.max_step_tokens));
  ropes_.clear();
  for (const RopeSpec& rope : program_.ropes) {
    const bool by_row = rope.DependsOnLength();
    ropes_.push_back(
        BuildRopeTable(rope, by_row ? limits.max_step_tokens : limits.max_sequence_length));
  }
  runner_.emplace(StepParts{program_, kernels_, CellsOf(kernels_, kv_type_),
                            LatentsOf(kernels_, kv_type_), *weights_, cache_, buffers_,
                            expert_buffers_, ropes_, block_size_, pool_, communicator_, states_});
  return absl::OkStatus();
}

absl::Status CpuBackend::MakeCache(const KvBlocks& blocks, bool serving) {
  PagedLayout layout{program_.caches, block_size_, kernels_.weight};
  layout.kv_type = kv_type_;
  std::uint32_t spare = 0;
  if (limits_.max_candidate_rows > 0) {
    layout.hidden = program_.Width(Buffer::kSelected);
    const auto pack = static_cast<std::uint32_t>(CellsOf(kernels_, kv_type_).pack);
    spare = layout.BlocksFor(limits_.max_candidate_rows * pack);
  }
  if (blocks.empty()) spare = 0;
  const std::uint32_t cells = blocks.empty() ? 0 : cells_;
  const auto row_blocks = static_cast<std::uint32_t>(BlocksOfCells(cells, most_rows_, block_size_));
  rows_ = RowBlocks(cells, most_rows_, BlockId(blocks[0]), block_size_);
  KvBlocks all = blocks;
  for (std::uint32_t& count : all.by_group) count += row_blocks;
  // Where memory is scarce the whole cache is pre-faulted: missing memory must show before serving.
  StateCounts counts;
  if (!blocks.empty()) counts = {limits_.max_sequences, limits_.max_draft_rows, snapshots_};
  const std::uint64_t bytes =
      layout.Bytes(all) + spare * layout.BytesPerBlock() + counts.All() * program_.StateBytes();
  const bool plenty = serving && free_memory_ != nullptr && bytes < free_memory_() / 4 * 3;
  // Before serving, the first slots are enough.
  PENSTOCK_RETURN_IF_ERROR(states_.Allocate(program_.states, counts, pool_,
                                            serving && !plenty ? SIZE_MAX : kPrefaultedFirst));
  sequence_blocks_ = blocks;
  return cache_.Allocate(layout, all, spare, pool_, plenty ? kPrefaultedFirst : SIZE_MAX,
                         row_blocks);
}

absl::StatusOr<CellsArranged> CpuBackend::ArrangeCells(std::span<const CellPart> parts) {
  PENSTOCK_ASSIGN_OR_RETURN(const CellsArranged arranged, rows_.Arrange(parts));
  const std::vector<RowBlocks::Copy>& copies = rows_.copies();
  ForEach(static_cast<std::uint32_t>(copies.size()), [&](std::uint32_t item, std::uint32_t) {
    cache_.CopyBlock(0, copies[item].from.value(), copies[item].to.value());
  });
  return arranged;
}

absl::Status CpuBackend::SaveStates(std::span<const StateCopy> copies) {
  PENSTOCK_RETURN_IF_ERROR(CheckStateCopies(copies, limits_, states_.snapshots()));
  ForEach(static_cast<std::uint32_t>(copies.size()),
          [&](std::uint32_t item, std::uint32_t) { states_.Save(copies[item]); });
  return absl::OkStatus();
}

absl::Status CpuBackend::RestoreStates(std::span<const StateCopy> copies) {
  PENSTOCK_RETURN_IF_ERROR(CheckStateCopies(copies, limits_, states_.snapshots()));
  ForEach(static_cast<std::uint32_t>(copies.size()),
          [&](std::uint32_t item, std::uint32_t) { states_.Restore(copies[item]); });
  return absl::OkStatus();
}

absl::Status CpuBackend::CopyBlocks(std::span<const BlockCopy> copies) {
  PENSTOCK_RETURN_IF_ERROR(CheckCopies(copies, program_.KvGroups(), sequence_blocks_));
  for (const BlockCopy& copy : copies) {
    cache_.CopyBlock(copy.kv_group, copy.src.value(), copy.dst.value());
  }
  return absl::OkStatus();
}

absl::Status CpuBackend::Execute(const RaggedBatch& batch) {
  logit_count_ = 0;
  // A padded KV row is a sequence with other blocks.
  segments_.assign(batch.segments.begin(), batch.segments.end());
  for (RaggedSegment& segment : segments_) {
    if (segment.row.has_value()) segment.blocks = rows_.Table(*segment.row);
    segment.row.reset();
  }
  const RaggedBatch placed{batch.tokens, segments_, batch.logit_rows};
  PENSTOCK_RETURN_IF_ERROR(CheckBatch(placed, limits_, program_, {block_size_, cache_.blocks()}));
  states_.BeginStep(segments_);
  PENSTOCK_RETURN_IF_ERROR(runner_->Execute(placed));
  logit_count_ = batch.logit_rows.size();
  return absl::OkStatus();
}

absl::Status CpuBackend::Similarities(std::uint32_t segment, std::span<float> out) {
  for (const CandidateSegment& candidates : runner_->candidates()) {
    if (candidates.segment != segment || candidates.rows != out.size()) continue;
    runner_->Similarities(candidates, out);
    return absl::OkStatus();
  }
  return NotCandidates(segment, out.size());
}

absl::Status CpuBackend::CommitCandidates(std::span<const CandidateChoice> choices) {
  const std::vector<CandidateSegment>& all = runner_->candidates();
  if (choices.size() != all.size()) return NotAllCandidates(choices.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (choices[i].segment != all[i].segment || choices[i].row >= all[i].rows) {
      return NotCandidates(choices[i].segment, choices[i].row + std::size_t{1});
    }
    runner_->Commit(all[i], choices[i].row);
  }
  return absl::OkStatus();
}

absl::Status CpuBackend::KeepDrafts(std::span<const DraftsKept> kept) {
  if (program_.states.empty()) return absl::OkStatus();
  const std::vector<StateSegment>& segments = states_.segments();
  for (const DraftsKept& one : kept) {
    if (one.segment >= segments.size() || one.rows > segments[one.segment].drafts) {
      return NotDrafts(one);
    }
    states_.Keep(one);
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorView> CpuBackend::Logits(std::uint32_t first, std::uint32_t count) {
  PENSTOCK_RETURN_IF_ERROR(CheckLogitRows(first, count, limits_, logit_count_));
  const std::size_t width = program_.OutputWidth();
  // Without a head every rank has the whole rows.
  if (program_.part.world > 1 && !program_.head.empty()) {
    PENSTOCK_RETURN_IF_ERROR(GatherLogits(first, count));
  } else {
    runner_->Logits(first, count, buffers_.logits(), width, width);
  }
  return TensorView::Matrix(buffers_.logits(), count, width, DType::kFloat32);
}

absl::Status CpuBackend::GatherLogits(std::size_t first, std::size_t count) {
  const std::size_t share = program_.Width(Buffer::kLogits);
  const std::size_t vocabulary = program_.vocabulary;
  float* mine = buffers_.View(Buffer::kLogits).Floats(0);
  runner_->Logits(first, count, mine, share, share);
  PENSTOCK_RETURN_IF_ERROR(
      communicator_->AllGather(mine, count * share * sizeof(float), buffers_.gathered()));
  for (std::size_t rank = 0; rank < program_.part.world; ++rank) {
    const std::size_t begin = std::min(vocabulary, rank * share);
    const std::size_t size = std::min(share, vocabulary - begin);
    for (std::size_t row = 0; row < count; ++row) {
      const float* from = buffers_.gathered() + (rank * count + row) * share;
      std::copy_n(from, size, buffers_.logits() + row * vocabulary + begin);
    }
  }
  return absl::OkStatus();
}

void CpuBackend::ForEach(std::uint32_t items, const Work& work) {
  if (items < 2) return Backend::ForEach(items, work);
  std::atomic<std::uint32_t> next = 0;
  pool_.Run([&](std::uint32_t thread) {
    for (std::uint32_t item = next++; item < items; item = next++) work(item, thread);
  });
}

std::uint64_t CpuBackend::MemoryBytes() const {
  std::uint64_t bytes = weights_->MemoryBytes() + buffers_.MemoryBytes() + cache_.MemoryBytes() +
                        expert_buffers_.bytes() + states_.MemoryBytes();
  for (const RopeTable& rope : ropes_) bytes += (rope.cos.size() + rope.sin.size()) * sizeof(float);
  return bytes;
}

}  // namespace
}  // namespace cpu

namespace {

absl::StatusOr<const cpu::Kernels*> KernelsFor(DType dtype) {
  PENSTOCK_ASSIGN_OR_RETURN(const cpu::Isa isa, cpu::ChooseIsa());
  const cpu::Kernels* kernels = cpu::FindKernels(isa, dtype);
  if (kernels != nullptr) return kernels;
  return absl::UnimplementedError("the cpu backend computes in float32 and bfloat16, not in " +
                                  std::string(DTypeName(dtype)));
}

// The kernels and the weight format for a model's types.
struct Choice {
  const cpu::Kernels* kernels;
  const cpu::WeightFormat* format;
};

absl::StatusOr<Choice> Choose(const CpuTypes& types) {
  PENSTOCK_ASSIGN_OR_RETURN(const cpu::Kernels* kernels, KernelsFor(types.dtype));
  PENSTOCK_ASSIGN_OR_RETURN(
      const cpu::WeightFormat* format,
      cpu::ChooseFormat(kernels->formats, kernels->isa, cpu::RequestOf(types)));
  return Choice{kernels, format};
}

}  // namespace

absl::Status CheckCpuBackend(const Program& program, const CpuTypes& types,
                             std::uint32_t block_size) {
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(types));
  for (const CacheShape& cache : program.caches) {
    if (cache.values_in_keys) continue;  // of any width
    const std::uint32_t dim = std::max(cache.key_dim, cache.value_dim);
    if (dim > cpu::kMostHeadDim) {
      return absl::UnimplementedError("the cpu backend attends with heads of at most " +
                                      std::to_string(cpu::kMostHeadDim) + " dimensions, not " +
                                      std::to_string(dim));
    }
  }
  if (block_size % cpu::CellsOf(*choice.kernels, types.kv_type).pack != 0) {
    return absl::OutOfRangeError("--block-size " + std::to_string(block_size) +
                                 ": must be even on the cpu backend with a KV cache in bfloat16");
  }
  return cpu::CheckOperations(program);
}

absl::StatusOr<std::string> CpuBackendName(const CpuTypes& types) {
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(types));
  return cpu::BackendName(*choice.kernels, *choice.format, types.kv_type);
}

absl::StatusOr<std::string> DescribeCpuBackend(const Program& program, const WeightSource& source,
                                               const CpuTypes& types) {
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(types));
  cpu::WeightStore::Options options;
  options.source = &source;
  options.format = choice.format;
  const cpu::WeightFormat& format = cpu::WeightStore::FormatFor(program, options, *choice.kernels);
  std::string text = cpu::BackendName(*choice.kernels, format, types.kv_type);
  if (format.Fallback() == nullptr) return text;
  return text + ", or " + cpu::BackendName(*choice.kernels, *format.Fallback(), types.kv_type) +
         " if its weights do not fit that format";
}

absl::StatusOr<std::uint64_t> CpuWeightBytes(const Program& program, const WeightSource& source,
                                             const CpuTypes& types) {
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(types));
  cpu::WeightStore::Options options;
  options.source = &source;
  options.format = choice.format;
  return cpu::WeightStore::BytesOf(program, options, *choice.kernels);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(CpuOptions options) {
  const CpuTypes types = cpu::TypesOf(options);
  PENSTOCK_RETURN_IF_ERROR(CheckCpuBackend(options.program, types, options.block_size));
  PENSTOCK_ASSIGN_OR_RETURN(const Choice choice, Choose(types));
  const cpu::Kernels& kernels = options.kernels != nullptr ? *options.kernels : *choice.kernels;
  auto backend = std::make_unique<cpu::CpuBackend>(options, kernels, *choice.format);
  PENSTOCK_RETURN_IF_ERROR(backend->Initialize(options));
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace penstock::shard
