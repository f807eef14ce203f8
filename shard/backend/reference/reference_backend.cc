#include "shard/backend/reference/reference_backend.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/status.h"
#include "shard/backend/batch_check.h"
#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/attention.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/backend/reference/decode_attention.h"
#include "shard/backend/reference/delta_net.h"
#include "shard/backend/reference/experts.h"
#include "shard/backend/reference/guarded.h"
#include "shard/backend/reference/kv_store.h"
#include "shard/backend/reference/latent.h"
#include "shard/backend/reference/operations.h"
#include "shard/model/rope_table.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard {
namespace {

// The minimum bytes of weights for one thread. With less, starting and joining threads for each
// operation takes longer than they save.
constexpr std::size_t kWeightBytesPerThread = 16 << 20;

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(ReferenceOptions options)
      : options_(std::move(options)), device_(ToAtDevice(options_.device)) {}

  absl::Status Initialize();
  std::string Name() const override { return "reference"; }
  absl::Status Prepare(const BackendLimits& limits, Communicator* communicator) override;
  absl::Status AllocateCache(std::uint32_t blocks) override;
  absl::Status SetCells(std::uint32_t cells, std::uint32_t) override {
    cells_ = cells;
    return absl::OkStatus();
  }
  absl::StatusOr<CellsArranged> ArrangeCells(std::span<const CellPart> parts) override;
  absl::Status CopyBlocks(std::span<const BlockCopy> copies) override;
  absl::Status Execute(const RaggedBatch& batch) override;
  absl::Status Similarities(std::uint32_t segment, std::span<float> out) override;
  absl::Status CommitCandidates(std::span<const CandidateChoice> choices) override;
  absl::StatusOr<TensorView> Logits(std::uint32_t first, std::uint32_t count) override;
  std::uint64_t MemoryBytes() const override;

 private:
  template <class Body>
  absl::Status Guarded(Body body) const {
    return shard::Guarded(device_, options_.stream, std::move(body));
  }
  // The rows that are computed. `first` counts in kSelected; other buffers begin at row 0.
  struct Rows {
    std::int64_t first = 0;
    std::int64_t count = 0;         // without padding
    std::int64_t padded_count = 0;  // with padding
  };

  absl::Status RunAll(const std::vector<Op>& ops);
  void Run(const EmbedOp& op);
  void Run(const PositionsOp& op);
  void Run(const NormOp& op);
  void Run(const LinearOp& op);
  void Run(const HeadNormOp& op);
  void Run(const RopeKvWriteOp& op);
  void Run(const AttentionOp& op);
  void Run(const GatedActivationOp& op);
  void Run(const ActivationOp& op);
  void Run(const ExpertsOp& op);
  void Run(const GateRowsOp& op);
  void Run(const GateOp& op);
  void Run(const DeltaNetOp& op);
  void Run(const SelectRowsOp& op);
  void Run(const ScaleLogitsOp& op);
  void Run(const LatentWriteOp& op);
  void Run(const HeadLinearOp& op);
  void Run(const GroupNormOp& op);
  void Run(const MultiplyOp& op);
  void Run(const ScaleOp& op);
  absl::Status Run(const AllReduceOp& op);
  absl::Status Run(const AllGatherOp& op);
  void WriteHidden();
  // Null if the last batch has no such segment of at least `rows` candidates.
  const SegmentInputs* FindCandidates(std::uint32_t index, std::size_t rows) const;
  void Commit(const SegmentInputs& segment, std::int64_t row);

  const Program& program() const { return options_.program; }
  const at::Tensor& Weight(std::int32_t index) const {
    return index == kNoWeight ? no_weight_ : weights_[static_cast<std::size_t>(index)];
  }
  at::Tensor& Whole(Buffer buffer) { return buffers_[static_cast<std::size_t>(buffer)]; }
  at::Tensor Padded(Buffer buffer) {
    return Whole(buffer).narrow(0, FirstRow(buffer), rows_.padded_count);
  }
  std::int64_t FirstRow(Buffer buffer) const {
    return buffer == Buffer::kSelected ? rows_.first : 0;
  }
  int Threads() const {
    std::size_t bytes = 0;
    for (const at::Tensor& weight : weights_) bytes += weight.nbytes();
    const std::size_t useful = std::max<std::size_t>(1, bytes / kWeightBytesPerThread);
    return static_cast<int>(std::min<std::size_t>(useful, options_.cpu_threads));
  }
  std::int64_t PadRows(std::int64_t rows) const {
    return (rows + row_multiple_ - 1) / row_multiple_ * row_multiple_;
  }
  // [rows, heads, dim] view of `heads` heads of `qkv`, which begin at `column`.
  at::Tensor Heads(Buffer qkv, std::int64_t column, std::int64_t heads, std::int64_t dim);

  ReferenceOptions options_;
  at::Device device_;
  std::int64_t row_multiple_ = 1;
  std::vector<at::Tensor> weights_;
  at::Tensor no_weight_;  // undefined
  BackendLimits limits_;
  Communicator* communicator_ = nullptr;
  std::array<at::Tensor, kBufferCount> buffers_;
  // Angles of one RopeSpec: float [rows, 1, rope.dim / 2].
  struct Angles {
    at::Tensor cos, sin;
  };
  std::vector<Angles> ropes_;  // of program().ropes; rows are positions
  at::Tensor reduce_;          // float staging of AllReduce for 16-bit types
  at::Tensor gathered_;        // float [world, max_logit_rows, vocabulary share]
  at::Tensor host_logits_;     // float [max_logit_rows, vocabulary]
  std::uint32_t cells_ = 0;    // of SetCells
  KvStore cache_;
  std::vector<DeltaStates> states_;  // of program().states

  // Of the present step.
  BatchInputs inputs_;
  std::vector<PartQueries> part_queries_;
  std::vector<Angles> step_ropes_;  // rows are those of the step
  at::Tensor units_;                // float [rows, hidden], with a hidden-state plane
  std::int64_t logit_count_ = 0;
  Rows rows_;
};

absl::Status ReferenceBackend::Initialize() {
  return Guarded([this] {
    if (device_.is_cpu()) row_multiple_ = options_.dtype == DType::kFloat32 ? kRowTile : 4;
    for (const TensorView& view : options_.weights.views) {
      const at::IntArrayRef shape(view.shape.data(), view.rank);
      weights_.push_back(at::from_blob(view.data, shape, ToScalarType(view.dtype)).to(device_));
    }
    if (!device_.is_cpu()) options_.weights = {};
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::Prepare(const BackendLimits& limits, Communicator* communicator) {
  PENSTOCK_RETURN_IF_ERROR(CheckCommunicator(program(), communicator));
  limits_ = limits;
  communicator_ = communicator;
  return Guarded([this] {
    at::set_num_threads(Threads());
    const std::int64_t step_rows = PadRows(limits_.max_step_tokens);
    const std::int64_t logit_rows = PadRows(limits_.max_logit_rows);
    const auto wide = at::TensorOptions().dtype(at::kFloat).device(device_);
    const auto narrow = wide.dtype(ToScalarType(options_.dtype));
    for (std::size_t i = 0; i < kBufferCount; ++i) {
      const auto buffer = static_cast<Buffer>(i);
      const std::int64_t rows = buffer == Buffer::kLogits     ? logit_rows
                                : buffer == Buffer::kSelected ? step_rows + logit_rows
                                                              : step_rows;
      buffers_[i] = at::zeros({rows, program().Width(buffer)}, narrow);
    }
    ropes_.clear();
    for (const RopeSpec& rope : program().ropes) {
      RopeTable table = BuildRopeTable(rope, limits_.max_sequence_length);
      const std::array<std::int64_t, 3> shape = {limits_.max_sequence_length, 1, rope.dim / 2};
      const auto copy = [&](std::vector<float>& values) {
        return at::from_blob(values.data(), shape, at::kFloat).to(device_, at::kFloat, false, true);
      };
      ropes_.push_back({copy(table.cos), copy(table.sin)});
    }
    const std::int64_t world = program().part.world;
    if (world > 1 && options_.dtype != DType::kFloat32) {
      const std::uint32_t widest =
          std::max(program().Width(Buffer::kHidden), program().Width(Buffer::kPerLayer));
      reduce_ = at::empty({step_rows * widest}, wide);
    }
    if (world > 1) {
      gathered_ =
          at::empty({world * limits_.max_logit_rows * program().Width(Buffer::kLogits)}, wide);
    }
    host_logits_ = at::empty({limits_.max_logit_rows, program().vocabulary}, at::kFloat);
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::AllocateCache(std::uint32_t blocks) {
  return Guarded([this, blocks] {
    states_.clear();
    cache_ = KvStore();  // freed first: the old and the new one may not fit together
    GiveBackMemory(device_);
    PagedLayout layout{program().caches, options_.block_size, options_.dtype};
    std::uint32_t spare = 0;
    if (limits_.max_candidate_rows > 0) {
      layout.hidden = program().Width(Buffer::kHidden);
      spare = layout.BlocksFor(limits_.max_candidate_rows);
    }
    const bool any = blocks > 0;
    cache_ = KvStore(layout, {blocks, any ? spare : 0, any ? cells_ : 0}, device_);
    for (const StateShape& shape : program().states) {
      if (any) states_.push_back(MakeDeltaStates(shape, limits_.max_sequences, device_));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<CellsArranged> ReferenceBackend::ArrangeCells(std::span<const CellPart> parts) {
  CellsArranged arranged;
  PENSTOCK_RETURN_IF_ERROR(Guarded([&]() -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(arranged, cache_.Arrange(parts));
    return absl::OkStatus();
  }));
  return arranged;
}

absl::Status ReferenceBackend::CopyBlocks(std::span<const BlockCopy> copies) {
  return Guarded([this, copies]() -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(CheckCopies(copies, cache_.blocks()));
    for (const BlockCopy& copy : copies) {
      cache_.CopyBlock(copy.src.value(), copy.dst.value());
    }
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::Execute(const RaggedBatch& batch) {
  return Guarded([this, &batch]() -> absl::Status {
    logit_count_ = 0;
    const BatchShape shape{row_multiple_, options_.block_size, cache_.blocks()};
    PENSTOCK_RETURN_IF_ERROR(
        CheckBatch(batch, limits_, program(), {options_.block_size, cache_.blocks()}));
    const auto slot_of = [this](const RaggedSegment& segment, std::uint32_t position) {
      return cache_.SlotOf(segment, position);
    };
    inputs_ = MakeBatchInputs(batch, program(), shape, slot_of, device_);
    part_queries_ = CollectPartQueries(inputs_.segments, cache_.cells());
    step_ropes_.clear();
    for (const Angles& rope : ropes_) {
      step_ropes_.push_back({at::index_select(rope.cos, 0, inputs_.positions),
                             at::index_select(rope.sin, 0, inputs_.positions)});
    }
    rows_ = {0, inputs_.rows, inputs_.padded_rows};
    PENSTOCK_RETURN_IF_ERROR(RunAll(program().body));
    if (cache_.has_hidden()) WriteHidden();
    logit_count_ = static_cast<std::int64_t>(batch.logit_rows.size());
    return absl::OkStatus();
  });
}

const SegmentInputs* ReferenceBackend::FindCandidates(std::uint32_t index, std::size_t rows) const {
  if (index >= inputs_.segments.size()) return nullptr;
  const SegmentInputs& segment = inputs_.segments[index];
  const bool found = segment.candidates() && static_cast<std::size_t>(segment.query_count) >= rows;
  return found ? &segment : nullptr;
}

absl::Status ReferenceBackend::Similarities(std::uint32_t segment, std::span<float> out) {
  const SegmentInputs* candidates = FindCandidates(segment, out.size());
  if (candidates == nullptr) return NotCandidates(segment, out.size());
  return Guarded([&] {
    const at::Tensor plane = cache_.Hidden(*candidates, candidates->context_length);
    const at::Tensor own = units_.narrow(0, candidates->query_start, candidates->query_count);
    const at::Tensor largest = at::mm(plane, own.t()).amax(0).cpu().contiguous();
    std::copy_n(largest.data_ptr<float>(), out.size(), out.begin());
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::CommitCandidates(std::span<const CandidateChoice> choices) {
  const auto all = std::count_if(inputs_.segments.begin(), inputs_.segments.end(),
                                 [](const SegmentInputs& segment) { return segment.candidates(); });
  if (choices.size() != static_cast<std::size_t>(all)) return NotAllCandidates(choices.size(), all);
  return Guarded([&]() -> absl::Status {
    for (const CandidateChoice& choice : choices) {
      const SegmentInputs* segment = FindCandidates(choice.segment, choice.row + std::size_t{1});
      if (segment == nullptr) return NotCandidates(choice.segment, choice.row + std::size_t{1});
      Commit(*segment, choice.row);
    }
    return absl::OkStatus();
  });
}

void ReferenceBackend::Commit(const SegmentInputs& segment, std::int64_t row) {
  cache_.CopyPosition(segment.first_own_slot + row, segment.commit_slot);
  // Its logit row was that of the first candidate.
  Whole(Buffer::kSelected)
      .select(0, segment.logit_index)
      .copy_(Whole(Buffer::kNormed).select(0, segment.query_start + row));
}

// Writes unit vectors of all rows to the plane. Similarities reads those of candidates.
void ReferenceBackend::WriteHidden() {
  const at::Tensor rows = Whole(Buffer::kNormed).narrow(0, 0, rows_.count).to(at::kFloat);
  const at::Tensor lengths = rows.square().sum(-1, true).sqrt_();
  units_ = rows.div(lengths.masked_fill(lengths.eq(0), 1));
  cache_.WriteHidden(inputs_.kv_slots, units_);
}

absl::StatusOr<TensorView> ReferenceBackend::Logits(std::uint32_t first, std::uint32_t count) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckLogitRows(first, count, limits_, static_cast<std::size_t>(logit_count_)));
  PENSTOCK_RETURN_IF_ERROR(Guarded([this, first, count]() -> absl::Status {
    rows_ = {first, count, PadRows(count)};
    PENSTOCK_RETURN_IF_ERROR(RunAll(program().head));
    if (program().part.world > 1) return absl::OkStatus();
    host_logits_.narrow(0, 0, count).copy_(Whole(Buffer::kLogits).narrow(0, 0, count));
    return absl::OkStatus();
  }));
  // The copy to the host waited for the device, so the collectives are done.
  if (communicator_ != nullptr) PENSTOCK_RETURN_IF_ERROR(communicator_->Health());
  return TensorView::Matrix(host_logits_.data_ptr(), count, program().vocabulary, DType::kFloat32);
}

std::uint64_t ReferenceBackend::MemoryBytes() const {
  std::uint64_t bytes = cache_.Bytes();
  for (const DeltaStates& states : states_) bytes += states.Bytes();
  const auto add = [&bytes](const at::Tensor& tensor) {
    if (tensor.defined()) bytes += tensor.nbytes();
  };
  for (const at::Tensor& tensor : weights_) add(tensor);
  for (const at::Tensor& tensor : buffers_) add(tensor);
  for (const Angles& rope : ropes_) {
    add(rope.cos);
    add(rope.sin);
  }
  for (const at::Tensor* tensor : {&reduce_, &gathered_, &host_logits_}) add(*tensor);
  return bytes;
}

absl::Status ReferenceBackend::RunAll(const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    PENSTOCK_RETURN_IF_ERROR(std::visit(
        [this](const auto& typed) -> absl::Status {
          if constexpr (std::is_void_v<decltype(Run(typed))>) {
            Run(typed);
            return absl::OkStatus();
          } else {
            return Run(typed);
          }
        },
        op));
  }
  return absl::OkStatus();
}

void ReferenceBackend::Run(const EmbedOp& op) {
  at::Tensor out = Padded(op.out);
  at::index_select_out(out, Weight(op.table), 0, inputs_.token_rows);
  if (inputs_.token_mask.defined()) out.mul_(inputs_.token_mask);
  if (op.scale != 1.0f) out.mul_(op.scale);
}

void ReferenceBackend::Run(const PositionsOp& op) {
  const at::Tensor rows = inputs_.positions.add(static_cast<std::int64_t>(op.offset));
  Padded(op.out).add_(at::index_select(Weight(op.table), 0, rows));
}

void ReferenceBackend::Run(const NormOp& op) {
  const at::Tensor in = Padded(op.in);
  if (op.add != Buffer::kNone) in.add_(Padded(op.add), op.add_scale);
  switch (op.kind) {
    case NormKind::kLayer:
      return LayerNorm(in, Weight(op.weight), Weight(op.bias), op.eps, Padded(op.out));
    case NormKind::kRms:
      return RmsNorm(in, Weight(op.weight), op.weight_offset, op.eps, Padded(op.out));
    case NormKind::kCopy:
      Padded(op.out).copy_(in);
      return;
  }
}

void ReferenceBackend::Run(const LinearOp& op) {
  const at::Tensor& weight = Weight(op.weight);
  const at::Tensor in = Padded(op.in).narrow(1, 0, weight.size(1));
  const at::Tensor out = Padded(op.out).narrow(1, 0, weight.size(0));
  const at::Tensor sum = op.accumulate ? at::empty(out.sizes(), out.options()) : out;
  Linear(in, weight, Weight(op.bias), sum);
  if (op.accumulate) out.add_(sum);
}

at::Tensor ReferenceBackend::Heads(Buffer qkv, std::int64_t column, std::int64_t heads,
                                   std::int64_t dim) {
  return Padded(qkv).narrow(1, column, heads * dim).view({rows_.padded_count, heads, dim});
}

void ReferenceBackend::Run(const HeadNormOp& op) {
  const HeadShape& shape = op.heads;
  const auto norm = [&](std::uint32_t column, std::uint32_t heads, std::uint32_t dim,
                        WeightIndex weight) {
    const at::Tensor rows = Heads(op.qkv, column, heads, dim);
    RmsNorm(rows, Weight(weight), op.weight_offset, op.eps, rows);
  };
  if (op.query_weight != kNoWeight) norm(0, shape.query_heads, shape.key_dim, op.query_weight);
  const std::uint32_t keys = shape.QueryWidth();
  if (op.key_weight != kNoWeight) norm(keys, shape.kv_heads, shape.key_dim, op.key_weight);
  if (op.values) norm(keys + shape.KeyWidth(), shape.kv_heads, shape.value_dim, kNoWeight);
}

void ReferenceBackend::Run(const RopeKvWriteOp& op) {
  const HeadShape& shape = op.heads;
  if (op.rope != kNoRope) {
    const Angles& angles = step_ropes_[static_cast<std::size_t>(op.rope)];
    const std::uint32_t heads = shape.query_heads + (op.writes ? shape.kv_heads : 0);
    RotateHalves(Heads(op.qkv, 0, heads, shape.key_dim), angles.cos, angles.sin);
  }
  if (!op.writes) return;
  const at::Tensor qkv = Whole(op.qkv).narrow(0, 0, rows_.count);
  const at::Tensor keys = qkv.narrow(1, shape.QueryWidth(), shape.KeyWidth());
  const at::Tensor values =
      qkv.narrow(1, shape.QueryWidth() + shape.KeyWidth(), shape.ValueWidth());
  cache_.Write(op.cache, inputs_.kv_slots, keys, values);
}

void ReferenceBackend::Run(const AttentionOp& op) {
  const HeadShape& heads = op.heads;
  AttentionShape shape{heads.query_heads, heads.kv_heads, heads.key_dim, heads.value_dim,
                       op.scale,          op.window,      op.softcap,    {}};
  if (op.sinks != kNoWeight) shape.sinks = Weight(op.sinks).to(at::kFloat);
  const at::Tensor queries = Whole(op.qkv).narrow(1, 0, op.heads.QueryWidth());
  const at::Tensor out = Whole(op.out).narrow(1, 0, op.heads.OutputWidth());
  for (const PartQueries& part : part_queries_) {
    PartAttention(shape, cache_, op.cache, part, queries, out);
  }
  for (const SegmentInputs& segment : inputs_.segments) {
    if (IsPartQuery(segment)) continue;
    const auto attend = segment.candidates() ? CandidateAttention : SegmentAttention;
    attend(shape, cache_, op.cache, segment, queries, out);
  }
}

void ReferenceBackend::Run(const GatedActivationOp& op) {
  const at::Tensor in = Padded(op.in), out = Padded(op.out).narrow(1, 0, op.width);
  Activate(in.narrow(1, 0, op.width), op.activation, out);
  out.mul_(in.narrow(1, op.width, op.width));
}

void ReferenceBackend::Run(const ActivationOp& op) {
  Activate(Padded(op.in).narrow(1, 0, op.width), op.activation,
           Padded(op.out).narrow(1, 0, op.width));
}

void ReferenceBackend::Run(const ExpertsOp& op) {
  const auto weight = [this](WeightIndex index) -> const at::Tensor& { return Weight(index); };
  RunExperts(op, Padded(op.in), Padded(op.scores), weight, Padded(op.out));
}

void ReferenceBackend::Run(const GateRowsOp& op) {
  Padded(op.buffer).mul_(Padded(op.gate).sigmoid());
}

void ReferenceBackend::Run(const GroupNormOp& op) {
  const at::Tensor in = Padded(op.in);
  const at::Tensor groups = in.view({in.size(0), in.size(1) / op.size, op.size});
  RmsNorm(groups, Weight(op.weight), 0.0, op.eps, groups);
  Padded(op.out).add_(in).mul_(op.scale);
}

void ReferenceBackend::Run(const MultiplyOp& op) {
  Padded(op.buffer).narrow(1, 0, op.width).mul_(Padded(op.by).narrow(1, op.first, op.width));
}

void ReferenceBackend::Run(const ScaleOp& op) { Padded(op.buffer).mul_(Weight(op.weight)); }

void ReferenceBackend::Run(const GateOp& op) {
  const at::Tensor gate = Padded(op.gate).narrow(1, 0, op.width);
  Padded(op.buffer).narrow(1, 0, op.width).mul_(gate.sigmoid());
}

void ReferenceBackend::Run(const DeltaNetOp& op) {
  const DeltaWeights weights{Weight(op.convolution), Weight(op.decay), Weight(op.decay_bias),
                             Weight(op.norm)};
  const at::Tensor out = Whole(op.out).narrow(1, 0, op.ValueWidth());
  for (const SegmentInputs& segment : inputs_.segments) {
    DeltaNet(op, weights, segment, states_[op.state], Whole(op.in), out);
  }
}

void ReferenceBackend::Run(const ScaleLogitsOp& op) {
  const at::Tensor logits = Padded(op.buffer);
  if (op.scale != 1.0f) logits.mul_(op.scale);
  if (op.softcap != 0.0f) SoftCap(logits, op.softcap);
}

void ReferenceBackend::Run(const LatentWriteOp& op) {
  const std::int64_t width = std::int64_t{op.latent_dim} + op.rope_dim;
  const Angles& angles = step_ropes_[static_cast<std::size_t>(op.rope)];
  PrepareLatents(op, Weight(op.weight), angles.cos, angles.sin,
                 Heads(op.queries, 0, op.heads, std::int64_t{op.nope_dim} + op.rope_dim),
                 Heads(op.latent, 0, 1, width));
  const at::Tensor latents = Whole(op.latent).narrow(0, 0, rows_.count).narrow(1, 0, width);
  cache_.Write(op.cache, inputs_.kv_slots, latents, at::Tensor());
}

void ReferenceBackend::Run(const HeadLinearOp& op) {
  const auto heads = static_cast<std::int64_t>(op.matrices.size());
  const std::int64_t rest = op.rest;
  std::vector<at::Tensor> matrices;
  for (const WeightIndex index : op.matrices) matrices.push_back(Weight(index));
  MultiplyHeads(op, matrices, Heads(op.in, 0, heads, op.in_dim + rest),
                Heads(op.out, 0, heads, op.out_dim + rest));
}

void ReferenceBackend::Run(const SelectRowsOp& op) {
  const std::int64_t count = inputs_.logit_rows.size(0);
  if (count == 0) return;
  at::Tensor out = Whole(op.out).narrow(0, 0, count);
  at::index_select_out(out, Whole(op.in), 0, inputs_.logit_rows);
}

absl::Status ReferenceBackend::Run(const AllReduceOp& op) {
  at::Tensor data = Whole(op.buffer).narrow(0, 0, rows_.count);
  const auto count = static_cast<std::size_t>(data.numel());
  if (data.scalar_type() == at::kFloat) {
    return communicator_->AllReduceSum(data.data_ptr<float>(), count);
  }
  const at::Tensor staging = reduce_.narrow(0, 0, data.numel()).view(data.sizes());
  staging.copy_(data);
  PENSTOCK_RETURN_IF_ERROR(communicator_->AllReduceSum(staging.data_ptr<float>(), count));
  data.copy_(staging);
  return absl::OkStatus();
}

absl::Status ReferenceBackend::Run(const AllGatherOp& op) {
  const std::int64_t world = program().part.world;
  const std::int64_t share = program().Width(op.buffer);
  const at::Tensor mine = Whole(op.buffer).narrow(0, 0, rows_.count).to(at::kFloat).contiguous();
  PENSTOCK_RETURN_IF_ERROR(
      communicator_->AllGather(mine.data_ptr(), mine.nbytes(), gathered_.data_ptr()));
  const at::Tensor all = gathered_.narrow(0, 0, world * rows_.count * share)
                             .view({world, rows_.count, share})
                             .transpose(0, 1)
                             .reshape({rows_.count, world * share})
                             .narrow(1, 0, program().vocabulary);
  host_logits_.narrow(0, 0, rows_.count).copy_(all);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeReferenceBackend(ReferenceOptions options) {
  auto backend = std::make_unique<ReferenceBackend>(std::move(options));
  PENSTOCK_RETURN_IF_ERROR(backend->Initialize());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace penstock::shard
