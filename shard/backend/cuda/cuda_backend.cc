#include "shard/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status.h"
#include "shard/backend/batch_check.h"
#include "shard/backend/cuda/graph_buckets.h"
#include "shard/backend/cuda/program_check.h"
#include "shard/backend/cuda/program_runner.h"
#include "shard/backend/cuda/sampling_runner.h"
#include "shard/backend/cuda/step_inputs.h"
#include "shard/backend/device_sampler.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard::cuda {
namespace {

std::vector<WindowLayers> WindowsOf(const Program& program) {
  std::set<WindowLayers> windows;
  for (const Op& op : program.body) {
    const auto* attention = std::get_if<AttentionOp>(&op);
    if (attention == nullptr) continue;
    windows.insert(WindowLayers{attention->window, program.caches[attention->cache].kv_group,
                                attention->chunk});
  }
  return {windows.begin(), windows.end()};
}

bool AdjustsScores(const Program& program) {
  return std::any_of(program.body.begin(), program.body.end(), [](const Op& op) {
    const auto* attention = std::get_if<AttentionOp>(&op);
    return attention != nullptr &&
           (attention->chunk > 0 || attention->softcap != 0.0f || attention->sinks != kNoWeight ||
            !attention->alibi.slopes.empty());
  });
}

AttentionKind ChooseAttention(const CudaOptions& options) {
  if (!options.parts.tensor_cores) return AttentionKind::kFloat;
  const AttentionKind kind = AttentionKindOf(options.dtype, HeadsOf(options.program),
                                             options.block_size, AdjustsScores(options.program));
  return kind == AttentionKind::kTensorCores && options.batch_invariant ? AttentionKind::kFixed
                                                                        : kind;
}

class CudaBackend final : public Backend, public DeviceSampler {
 public:
  CudaBackend(CudaOptions options, Gpu& gpu)
      : options_(std::move(options)),
        gpu_(gpu),
        runner_(options_.program, options_.dtype, gpu, options_.parts,
                {options_.batch_invariant, options_.kv_type == KvType::kFp8}),
        attention_(ChooseAttention(options_)) {}
  ~CudaBackend() override { FreeGraphs(); }

  absl::Status Initialize(const WeightSource& source) {
    return runner_.LoadWeights(source, options_.progress, FormOf(options_.quantization));
  }
  std::string Name() const override {
    std::string name = "cuda";
    if (options_.quantization != Quantization::kNone) {
      name += "/" + std::string(QuantizationName(options_.quantization));
    }
    if (options_.kv_type != KvType::kAuto)
      name += "/kv-" + std::string(KvTypeName(options_.kv_type));
    return name;
  }
  absl::Status Prepare(const BackendLimits& limits, Communicator* communicator) override;
  absl::Status AllocateCache(const KvBlocks& blocks) override;
  absl::Status CopyBlocks(std::span<const BlockCopy> copies) override;
  absl::Status Execute(const RaggedBatch& batch) override;
  absl::Status Similarities(std::uint32_t segment, std::span<float> out) override;
  absl::Status CommitCandidates(std::span<const CandidateChoice> choices) override;
  absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) override;
  std::uint64_t MemoryBytes() const override;
  bool CanSample(std::span<const SampleRequest> requests) const override {
    return Alone() && requests.size() <= logit_rows_ && sampling_.CanSample(requests);
  }
  absl::Status Sample(std::uint32_t first, std::span<const SampleRequest> requests,
                      std::span<DeviceToken> out) override;
  absl::Status BeginStep(const RaggedBatch& batch, std::span<const std::int32_t> newest,
                         std::span<const SampleRequest> requests,
                         std::function<void()> ready) override;
  absl::Status EndStep(std::span<DeviceToken> out) override;

 private:
  PagedLayout Layout() const {
    return {options_.program.caches, options_.block_size, options_.dtype, 0, options_.kv_type};
  }
  HeadShape Heads() const { return HeadsOf(options_.program); }
  ItemRule Items() const {
    return {(limits_.max_sequence_length + kPartition - 1) / kPartition,
            attention_ == AttentionKind::kTensorCores ? MostSpareItems(Heads().kv_heads) : 0};
  }
  // With one rank the device has whole rows of logits, and graphs include the sampling.
  bool Alone() const { return options_.program.part.world == 1; }
  bool RecordsGraphs() const {
    return options_.parts.graphs && (Alone() || communicator_->CanBeRecorded());
  }
  InputLimits LimitsOfInputs() const;
  absl::Status PrepareRunner(const InputLimits& inputs);
  void PlaceArrays();
  // Enqueues the head and the sampling of `rows` logit rows, after the body.
  absl::Status EnqueueSampling(std::uint32_t rows);
  absl::Status EnqueueStep(const RaggedBatch& batch, std::span<const std::int32_t> newest,
                           std::span<const SampleRequest> requests);
  // Logits of the last batch from row `first` on, on the device.
  absl::StatusOr<float*> HeadRows(std::uint32_t first, std::uint32_t count);
  absl::Status RecordGraphs();
  absl::StatusOr<Gpu::Graph> Record(const GraphShape& shape);
  RaggedBatch DummyStep(std::uint32_t rows);
  void FreeGraphs();
  // Joins the shares of the ranks into [count, vocabulary].
  void JoinShares(std::uint32_t count);

  const CudaOptions options_;
  Gpu& gpu_;
  ProgramRunner runner_;
  const AttentionKind attention_;
  BackendLimits limits_;
  Communicator* communicator_ = nullptr;
  StepInputs inputs_;
  GpuMemory cache_;
  std::vector<CacheArrays> arrays_;  // in cache_
  GpuMemory shares_;                 // pinned: logits by rank
  std::vector<float> joined_;        // with several ranks
  SamplingRunner sampling_;
  KvBlocks blocks_;                // each group has one more, the scratch block
  std::uint32_t logit_count_ = 0;  // of the last batch
  bool head_done_ = false;         // for all of them
  std::uint32_t logit_rows_ = 0;   // most rows of the head and of sampling
  std::deque<Gpu::Mark> begun_;    // ends of steps that were begun
  std::vector<std::int32_t> newest_of_logits_;

  std::optional<GraphBuckets> buckets_;
  std::map<GraphShape, Gpu::Graph> graphs_;
  std::vector<TokenId> dummy_tokens_;
  std::vector<RaggedSegment> dummy_segments_;
  std::array<BlockId, kMostKvGroups> dummy_blocks_;  // by KV group
};

InputLimits CudaBackend::LimitsOfInputs() const {
  // In decode each row has its own items. Each sequence of a step has a block table; one of a
  // prompt may come with the decodes.
  InputLimits limits;
  limits.rows = std::max(limits_.max_step_tokens, limits_.max_logit_rows);
  limits.blocks = std::min(limits.rows, limits_.max_sequences + 1) *
                      Layout().BlocksFor(limits_.max_sequence_length) +
                  1;
  const ItemRule items = Items();
  limits.items = limits.rows * (items.spare > 0 ? 1 : items.max_partitions) + items.spare;
  return limits;
}

absl::Status CudaBackend::Prepare(const BackendLimits& limits, Communicator* communicator) {
  PENSTOCK_RETURN_IF_ERROR(CheckCommunicator(options_.program, communicator));
  if (limits.max_candidate_rows > 0) {
    return absl::UnimplementedError(
        "the cuda backend has no contrastive search yet: start without --contrastive-search, or "
        "with --backend reference");
  }
  FreeGraphs();
  begun_.clear();
  limits_ = limits;
  communicator_ = communicator;
  const InputLimits inputs = LimitsOfInputs();
  inputs_ = StepInputs();
  PENSTOCK_ASSIGN_OR_RETURN(
      inputs_, StepInputs::Create(gpu_, inputs, Heads(), attention_, options_.block_size,
                                  WindowsOf(options_.program), options_.program.kv_window,
                                  options_.program.ropes));
  const std::uint32_t graph_rows = std::min(options_.max_graph_rows, limits.max_step_tokens);
  buckets_.emplace(graph_rows, Items());
  logit_rows_ = limits.max_logit_rows;
  if (options_.parts.graphs && Alone()) logit_rows_ = std::max(logit_rows_, graph_rows);
  PENSTOCK_RETURN_IF_ERROR(PrepareRunner(inputs));
  const std::size_t shares = std::size_t{options_.program.part.world} * limits.max_logit_rows *
                             options_.program.Width(Buffer::kLogits);
  PENSTOCK_ASSIGN_OR_RETURN(shares_, GpuMemory::Pinned(gpu_, shares * sizeof(float)));
  if (!Alone()) joined_.resize(std::size_t{limits.max_logit_rows} * options_.program.vocabulary);
  PENSTOCK_ASSIGN_OR_RETURN(sampling_,
                            SamplingRunner::Create(gpu_, logit_rows_, options_.program.vocabulary));
  return absl::OkStatus();
}

absl::Status CudaBackend::PrepareRunner(const InputLimits& inputs) {
  PENSTOCK_RETURN_IF_ERROR(runner_.Prepare(
      {inputs.rows, logit_rows_, limits_.max_sequence_length, inputs.items}, communicator_));
  for (const GraphShape& shape : buckets_->All()) {
    PENSTOCK_RETURN_IF_ERROR(runner_.TuneGemms(shape.rows));
  }
  return runner_.TuneGemms(inputs.rows);
}

void CudaBackend::PlaceArrays() {
  arrays_.clear();
  std::size_t next = 0;
  for (const CacheShape& cache : options_.program.caches) {
    const std::uint64_t positions =
        (std::uint64_t{blocks_[cache.kv_group]} + 1) * options_.block_size;
    const std::uint64_t bytes = positions * Layout().CacheBytesPerToken(cache) / 2;
    arrays_.push_back({cache_.At(next), cache_.At(next + bytes)});
    next += 2 * bytes;
  }
}

absl::Status CudaBackend::AllocateCache(const KvBlocks& blocks) {
  FreeGraphs();
  cache_ = GpuMemory();  // freed first: the old and the new one may not fit together
  blocks_ = blocks;
  const std::uint64_t bytes = Layout().Bytes(blocks) + Layout().BytesPerBlock();
  PENSTOCK_ASSIGN_OR_RETURN(cache_, GpuMemory::OnDevice(gpu_, bytes));
  PlaceArrays();
  inputs_.SetScratchBlocks(blocks);
  PENSTOCK_RETURN_IF_ERROR(gpu_.Zero(cache_.data(), bytes));
  return RecordsGraphs() && !blocks.empty() ? RecordGraphs() : gpu_.Synchronize();
}

// A decode step whose sequences are in the scratch block.
RaggedBatch CudaBackend::DummyStep(std::uint32_t rows) {
  dummy_tokens_.assign(rows, 0);
  dummy_segments_.clear();
  for (std::uint32_t group = 0; group < kMostKvGroups; ++group) {
    dummy_blocks_[group] = BlockId(blocks_[group]);
  }
  for (std::uint32_t row = 0; row < rows; ++row) {
    dummy_segments_.push_back({.query_start = row,
                               .query_count = 1,
                               .blocks = {&dummy_blocks_[0], 1},
                               .window_blocks = {&dummy_blocks_[1], 1}});
  }
  return {dummy_tokens_, dummy_segments_, {}};
}

absl::Status CudaBackend::EnqueueSampling(std::uint32_t rows) {
  if (rows == 0) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(runner_.RunHead(0, rows));
  return sampling_.Enqueue(runner_.HeadLogits(), rows);
}

absl::StatusOr<Gpu::Graph> CudaBackend::Record(const GraphShape& shape) {
  inputs_.Fill(DummyStep(shape.rows));
  inputs_.PadTo(shape);
  PENSTOCK_RETURN_IF_ERROR(inputs_.Upload());
  PENSTOCK_RETURN_IF_ERROR(sampling_.Stage({}, {}, std::min(shape.rows, logit_rows_)));
  const auto run = [&] {
    PENSTOCK_RETURN_IF_ERROR(runner_.RunBody(inputs_.OnDevice(), arrays_, sampling_.Tokens()));
    return Alone() ? EnqueueSampling(shape.rows) : absl::OkStatus();
  };
  // Runs once before the capture: libraries load kernels at their first call, which a capture
  // forbids.
  PENSTOCK_RETURN_IF_ERROR(run());
  PENSTOCK_RETURN_IF_ERROR(gpu_.Synchronize());
  PENSTOCK_RETURN_IF_ERROR(gpu_.BeginCapture());
  const absl::Status recorded = run();
  auto graph = gpu_.EndCapture();
  return recorded.ok() ? graph : recorded;
}

absl::Status CudaBackend::RecordGraphs() {
  for (const GraphShape& shape : buckets_->All()) {
    auto graph = Record(shape);
    if (graph.ok()) {
      graphs_[shape] = *graph;
      continue;
    }
    // Steps of this shape run without a graph, which is slower and gives the same results.
    log::Warn("no graph of decode steps of " + std::to_string(shape.rows) +
              " rows: " + Message(graph.status()));
  }
  return gpu_.Synchronize();
}

void CudaBackend::FreeGraphs() {
  for (const auto& [shape, graph] : graphs_) {
    if (graph != nullptr) gpu_.FreeGraph(graph);
  }
  graphs_.clear();
}

absl::Status CudaBackend::CopyBlocks(std::span<const BlockCopy> copies) {
  PENSTOCK_RETURN_IF_ERROR(CheckCopies(copies, options_.program.KvGroups(), blocks_));
  const std::vector<CacheShape>& caches = options_.program.caches;
  for (const BlockCopy& copy : copies) {
    for (std::size_t i = 0; i < caches.size(); ++i) {
      if (caches[i].kv_group != copy.kv_group) continue;
      const std::size_t bytes = Layout().CacheBytesPerToken(caches[i]) / 2 * options_.block_size;
      for (std::byte* const base : {arrays_[i].keys, arrays_[i].values}) {
        PENSTOCK_RETURN_IF_ERROR(
            gpu_.Copy(base + copy.dst.value() * bytes, base + copy.src.value() * bytes, bytes));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CudaBackend::Execute(const RaggedBatch& batch) {
  if (!begun_.empty()) return absl::InternalError("a step that was begun has not been ended");
  PENSTOCK_RETURN_IF_ERROR(EnqueueStep(batch, {}, {}));
  // Inputs alternate between two buffers. A call for logits waits for the step; without logits,
  // wait here.
  return logit_count_ > 0 ? absl::OkStatus() : gpu_.Synchronize();
}

// Launches the graph of the step's shape if there is one. It includes the sampling, which ignores
// rows that ask for nothing. Otherwise enqueues the body; Logits or Sample runs the head.
absl::Status CudaBackend::EnqueueStep(const RaggedBatch& batch,
                                      std::span<const std::int32_t> newest,
                                      std::span<const SampleRequest> requests) {
  logit_count_ = 0;
  head_done_ = false;
  PENSTOCK_RETURN_IF_ERROR(
      CheckBatch(batch, limits_, options_.program, {options_.block_size, blocks_}));
  inputs_.Fill(batch, newest);
  std::optional<GraphShape> shape;
  if (inputs_.is_decode() && !graphs_.empty()) {
    shape = buckets_->Choose(inputs_.rows(), inputs_.MostItems());
  }
  if (shape.has_value() && !graphs_.contains(*shape)) shape.reset();
  if (shape.has_value()) inputs_.PadTo(*shape);
  PENSTOCK_RETURN_IF_ERROR(inputs_.Upload());
  const bool samples = Alone() && (shape.has_value() || !requests.empty());
  newest_of_logits_.clear();
  if (!newest.empty()) {
    for (const std::uint32_t row : batch.logit_rows) newest_of_logits_.push_back(newest[row]);
  }
  if (samples) {
    PENSTOCK_RETURN_IF_ERROR(
        sampling_.Stage(requests, newest_of_logits_, shape.has_value() ? shape->rows : 0));
  }
  logit_count_ = static_cast<std::uint32_t>(batch.logit_rows.size());
  head_done_ = samples;
  if (!shape.has_value()) {
    PENSTOCK_RETURN_IF_ERROR(runner_.RunBody(inputs_.OnDevice(), arrays_, sampling_.Tokens()));
    return samples ? EnqueueSampling(logit_count_) : absl::OkStatus();
  }
  PENSTOCK_RETURN_IF_ERROR(gpu_.Launch(graphs_.at(*shape)));
  return communicator_ == nullptr ? absl::OkStatus() : communicator_->WatchQueued();
}

absl::Status CudaBackend::BeginStep(const RaggedBatch& batch, std::span<const std::int32_t> newest,
                                    std::span<const SampleRequest> requests,
                                    std::function<void()> ready) {
  if (!Alone() || requests.size() != batch.logit_rows.size() ||
      newest.size() != batch.tokens.size() || begun_.size() >= kMaxStepsInFlight) {
    return absl::InternalError("the cuda backend cannot begin this step");
  }
  PENSTOCK_RETURN_IF_ERROR(EnqueueStep(batch, newest, requests));
  // Each begun step must stage, even nothing: the staging buffers then alternate as Take expects.
  if (!head_done_) PENSTOCK_RETURN_IF_ERROR(sampling_.Stage({}, {}, 0));
  PENSTOCK_RETURN_IF_ERROR(sampling_.Fetch(logit_count_));
  PENSTOCK_ASSIGN_OR_RETURN(const Gpu::Mark mark, gpu_.MarkHere(std::move(ready)));
  begun_.push_back(mark);
  logit_count_ = 0;  // Logits may not be asked for: the next step overwrites them
  return absl::OkStatus();
}

absl::Status CudaBackend::EndStep(std::span<DeviceToken> out) {
  if (begun_.empty()) return absl::InternalError("no step was begun");
  const Gpu::Mark mark = begun_.front();
  begun_.pop_front();
  PENSTOCK_RETURN_IF_ERROR(gpu_.WaitFor(mark));
  if (communicator_ != nullptr) PENSTOCK_RETURN_IF_ERROR(communicator_->Health());
  sampling_.Take(out, !begun_.empty());
  return absl::OkStatus();
}

absl::Status CudaBackend::Similarities(std::uint32_t, std::span<float>) {
  return absl::InternalError("the cuda backend was given candidates");
}

absl::Status CudaBackend::CommitCandidates(std::span<const CandidateChoice> choices) {
  if (choices.empty()) return absl::OkStatus();
  return absl::InternalError("the cuda backend was given candidates");
}

absl::StatusOr<float*> CudaBackend::HeadRows(std::uint32_t first, std::uint32_t count) {
  PENSTOCK_RETURN_IF_ERROR(CheckLogitRows(first, count, limits_, logit_count_));
  if (head_done_) return runner_.HeadLogits() + std::size_t{first} * options_.program.vocabulary;
  PENSTOCK_RETURN_IF_ERROR(runner_.RunHead(first, count));
  return runner_.HeadLogits();
}

absl::Status CudaBackend::Sample(std::uint32_t first, std::span<const SampleRequest> requests,
                                 std::span<DeviceToken> out) {
  const auto rows = static_cast<std::uint32_t>(requests.size());
  PENSTOCK_ASSIGN_OR_RETURN(float* const logits, HeadRows(first, rows));
  PENSTOCK_RETURN_IF_ERROR(sampling_.Stage(requests, {}, 0));
  PENSTOCK_RETURN_IF_ERROR(sampling_.Enqueue(logits, rows));
  PENSTOCK_RETURN_IF_ERROR(sampling_.Fetch(rows));
  PENSTOCK_RETURN_IF_ERROR(gpu_.Synchronize());
  sampling_.Take(out);
  return absl::OkStatus();
}

absl::StatusOr<TensorView> CudaBackend::Logits(std::uint32_t first, std::uint32_t count) {
  const Program& program = options_.program;
  PENSTOCK_ASSIGN_OR_RETURN(const float* const logits, HeadRows(first, count));
  const std::size_t values =
      std::size_t{program.part.world} * count * program.Width(Buffer::kLogits);
  PENSTOCK_RETURN_IF_ERROR(gpu_.Download(shares_.data(), logits, values * sizeof(float)));
  PENSTOCK_RETURN_IF_ERROR(gpu_.Synchronize());
  if (communicator_ != nullptr) PENSTOCK_RETURN_IF_ERROR(communicator_->Health());
  if (program.part.world == 1) {
    return TensorView::Matrix(shares_.data(), count, program.vocabulary, DType::kFloat32);
  }
  JoinShares(count);
  return TensorView::Matrix(joined_.data(), count, program.vocabulary, DType::kFloat32);
}

void CudaBackend::JoinShares(std::uint32_t count) {
  const Program& program = options_.program;
  const std::size_t share = program.Width(Buffer::kLogits);
  const auto* shares = static_cast<const float*>(shares_.data());
  for (std::uint32_t row = 0; row < count; ++row) {
    for (std::size_t rank = 0; rank < program.part.world; ++rank) {
      const std::size_t begin = rank * share;
      if (begin >= program.vocabulary) break;  // the last shares may be padding
      const std::size_t size = std::min(share, program.vocabulary - begin);
      std::copy_n(shares + (rank * count + row) * share, size,
                  joined_.begin() +
                      static_cast<std::ptrdiff_t>(std::size_t{row} * program.vocabulary + begin));
    }
  }
}

std::uint64_t CudaBackend::MemoryBytes() const {
  return runner_.MemoryBytes() + cache_.bytes() + sampling_.MemoryBytes();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(CudaOptions options, Gpu& gpu) {
  PENSTOCK_RETURN_IF_ERROR(CheckCudaBackend(options.program, options.dtype));
  PENSTOCK_RETURN_IF_ERROR(CheckQuantization(options.quantization, options.dtype));
  const AttentionKind attention = ChooseAttention(options);
  PENSTOCK_RETURN_IF_ERROR(CheckKvType(options.kv_type, attention));
  if (options.batch_invariant) {
    PENSTOCK_RETURN_IF_ERROR(CheckBatchInvariant(options.program, options.dtype));
  }
  const LoadedWeights weights = std::move(options.weights);  // until they are on the device
  const LoadedSource loaded(weights.views);
  const WeightSource& source = options.source != nullptr ? *options.source : loaded;
  auto backend = std::make_unique<CudaBackend>(std::move(options), gpu);
  PENSTOCK_RETURN_IF_ERROR(backend->Initialize(source));
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace penstock::shard::cuda
