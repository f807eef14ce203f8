#include "shard/backend/reference/reference_backend.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/backend/batch_check.h"
#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/backend/reference/decode_attention.h"
#include "shard/backend/reference/delta_net.h"
#include "shard/backend/reference/guarded.h"
#include "shard/backend/reference/kv_store.h"
#include "shard/backend/reference/operation_runner.h"
#include "shard/backend/reference/operations.h"
#include "shard/backend/row_angles.h"
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
  bool HasAdapters() const override { return true; }
  absl::StatusOr<std::unique_ptr<BackendAdapter>> MakeAdapter(
      const LoraAdapter& adapter) const override;
  absl::Status AllocateCache(const KvBlocks& blocks) override;
  absl::Status SetCells(std::uint32_t cells, std::uint32_t) override {
    PENSTOCK_RETURN_IF_ERROR(CheckCells(cells, program()));
    cells_ = cells;
    return absl::OkStatus();
  }
  absl::StatusOr<CellsArranged> ArrangeCells(std::span<const CellPart> parts) override;
  absl::Status SetSnapshots(std::uint32_t snapshots) override {
    wanted_snapshots_ = snapshots;
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
  template <class Body>
  absl::Status Guarded(Body body) const {
    return shard::Guarded(device_, options_.stream, std::move(body));
  }
  RopeAngles ToDevice(RopeTable& table, std::int64_t rows) const;
  // The angles for each row of the batch.
  RopeAngles AnglesOf(std::size_t rope, const RaggedBatch& batch) const;
  OperationRunner Runner() { return {program(), communicator_, tensors_}; }
  // What the rows of kSelected were selected from.
  at::Tensor LastNorm() {
    return tensors_.Whole(Buffer::kNormed).narrow(1, 0, program().Width(Buffer::kSelected));
  }
  void WriteHidden();
  void TakeAdapters(const RaggedBatch& batch);
  // Null if the last batch has no such segment of at least `rows` candidates.
  const SegmentInputs* FindCandidates(std::uint32_t index, std::size_t rows) const;
  void Commit(const SegmentInputs& segment, std::int64_t row);

  const Program& program() const { return options_.program; }
  int Threads() const {
    std::size_t bytes = 0;
    for (const at::Tensor& weight : tensors_.weights) bytes += weight.nbytes();
    const std::size_t useful = std::max<std::size_t>(1, bytes / kWeightBytesPerThread);
    return static_cast<int>(std::min<std::size_t>(useful, options_.cpu_threads));
  }
  std::int64_t PadRows(std::int64_t rows) const {
    return (rows + row_multiple_ - 1) / row_multiple_ * row_multiple_;
  }

  ReferenceOptions options_;
  at::Device device_;
  std::int64_t row_multiple_ = 1;
  BackendLimits limits_;
  Communicator* communicator_ = nullptr;
  // One for each of program().ropes; rows are positions. Undefined where frequencies depend on the
  // length.
  std::vector<RopeAngles> ropes_;
  std::uint32_t cells_ = 0;             // of SetCells
  std::uint32_t wanted_snapshots_ = 0;  // of SetSnapshots
  std::uint32_t snapshots_ = 0;         // of the present cache
  ProgramTensors tensors_;

  // For the present step.
  at::Tensor units_;  // float [rows, hidden], with a hidden-state plane
  std::int64_t logit_count_ = 0;
};

absl::Status ReferenceBackend::Initialize() {
  return Guarded([this] {
    if (device_.is_cpu()) row_multiple_ = options_.dtype == DType::kFloat32 ? kRowTile : 4;
    for (const TensorView& view : options_.weights.views) {
      const at::IntArrayRef shape(view.shape.data(), view.rank);
      tensors_.weights.push_back(
          at::from_blob(view.data, shape, ToScalarType(view.dtype)).to(device_));
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
      const auto& type = buffer == Buffer::kSquares ? wide : narrow;
      tensors_.buffers[i] = at::zeros({rows, program().Width(buffer)}, type);
    }
    ropes_.clear();
    for (const RopeSpec& rope : program().ropes) {
      RopeAngles& angles = ropes_.emplace_back();
      if (rope.DependsOnLength()) continue;
      RopeTable table = BuildRopeTable(rope, limits_.max_sequence_length);
      angles = ToDevice(table, limits_.max_sequence_length);
    }
    const std::int64_t world = program().part.world;
    if (world > 1 && options_.dtype != DType::kFloat32) {
      const std::uint32_t widest =
          std::max(program().Width(Buffer::kHidden), program().Width(Buffer::kPerLayer));
      tensors_.reduce = at::empty({step_rows * widest}, wide);
    }
    if (world > 1) {
      tensors_.gathered =
          at::empty({world * limits_.max_logit_rows * program().Width(Buffer::kLogits)}, wide);
    }
    tensors_.host_logits = at::empty({limits_.max_logit_rows, program().vocabulary}, at::kFloat);
    return absl::OkStatus();
  });
}

RopeAngles ReferenceBackend::ToDevice(RopeTable& table, std::int64_t rows) const {
  const auto copy = [&](std::vector<float>& values) {
    const auto pairs = static_cast<std::int64_t>(values.size()) / rows;
    return at::from_blob(values.data(), {rows, 1, pairs}, at::kFloat)
        .to(device_, at::kFloat, false, true);
  };
  return {copy(table.cos), copy(table.sin)};
}

RopeAngles ReferenceBackend::AnglesOf(std::size_t rope, const RaggedBatch& batch) const {
  const RopeSpec& spec = program().ropes[rope];
  const BatchInputs& inputs = tensors_.inputs;
  if (!spec.DependsOnLength()) {
    return {at::index_select(ropes_[rope].cos, 0, inputs.positions),
            at::index_select(ropes_[rope].sin, 0, inputs.positions)};
  }
  const auto size = static_cast<std::size_t>(inputs.padded_rows) * (spec.dim / 2);
  RopeTable table{std::vector<float>(size), std::vector<float>(size)};
  SetRowAngles(spec, batch, table);
  return ToDevice(table, inputs.padded_rows);
}

absl::Status ReferenceBackend::AllocateCache(const KvBlocks& blocks) {
  return Guarded([this, &blocks] {
    tensors_.states.clear();
    tensors_.cache = KvStore();  // freed first: the old and the new one may not fit together
    GiveBackMemory(device_);
    PagedLayout layout{program().caches, options_.block_size, options_.dtype};
    std::uint32_t spare = 0;
    if (limits_.max_candidate_rows > 0) {
      layout.hidden = program().Width(Buffer::kSelected);
      spare = layout.BlocksFor(limits_.max_candidate_rows);
    }
    const bool any = !blocks.empty();
    snapshots_ = any && !program().states.empty() ? wanted_snapshots_ : 0;
    tensors_.cache = KvStore(layout, {blocks, any ? spare : 0, any ? cells_ : 0}, device_);
    for (const StateShape& shape : program().states) {
      if (!any) continue;
      tensors_.states.push_back(MakeDeltaStates(shape, limits_, snapshots_, device_));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<CellsArranged> ReferenceBackend::ArrangeCells(std::span<const CellPart> parts) {
  CellsArranged arranged;
  PENSTOCK_RETURN_IF_ERROR(Guarded([&]() -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(arranged, tensors_.cache.Arrange(parts));
    return absl::OkStatus();
  }));
  return arranged;
}

absl::Status ReferenceBackend::SaveStates(std::span<const StateCopy> copies) {
  PENSTOCK_RETURN_IF_ERROR(CheckStateCopies(copies, limits_, snapshots_));
  return Guarded([&] {
    for (const StateCopy& copy : copies) {
      for (const DeltaStates& states : tensors_.states) {
        states.Copy(copy.slot.value(), states.Place(copy.snapshot));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::RestoreStates(std::span<const StateCopy> copies) {
  PENSTOCK_RETURN_IF_ERROR(CheckStateCopies(copies, limits_, snapshots_));
  return Guarded([&] {
    for (const StateCopy& copy : copies) {
      for (const DeltaStates& states : tensors_.states) {
        states.Copy(states.Place(copy.snapshot), copy.slot.value());
      }
    }
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::CopyBlocks(std::span<const BlockCopy> copies) {
  return Guarded([this, copies]() -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(CheckCopies(copies, program().KvGroups(), tensors_.cache.blocks()));
    for (const BlockCopy& copy : copies) {
      tensors_.cache.CopyBlock(copy.kv_group, copy.src.value(), copy.dst.value());
    }
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::Execute(const RaggedBatch& batch) {
  return Guarded([this, &batch]() -> absl::Status {
    logit_count_ = 0;
    const BatchShape shape{row_multiple_, options_.block_size, tensors_.cache.blocks()};
    PENSTOCK_RETURN_IF_ERROR(
        CheckBatch(batch, limits_, program(), {options_.block_size, tensors_.cache.blocks()}));
    const auto slot_of = [this](const RaggedSegment& segment, std::uint32_t group,
                                std::uint32_t position) {
      return tensors_.cache.SlotOf(segment, group, position);
    };
    tensors_.inputs = MakeBatchInputs(batch, program(), shape, slot_of, device_);
    tensors_.part_queries = CollectPartQueries(tensors_.inputs.segments, tensors_.cache.cells());
    tensors_.ropes.clear();
    for (std::size_t i = 0; i < ropes_.size(); ++i) tensors_.ropes.push_back(AnglesOf(i, batch));
    tensors_.rows = {0, tensors_.inputs.rows, tensors_.inputs.padded_rows};
    TakeAdapters(batch);
    PENSTOCK_RETURN_IF_ERROR(Runner().RunAll(program().body));
    if (tensors_.cache.has_hidden()) WriteHidden();
    logit_count_ = static_cast<std::int64_t>(batch.logit_rows.size());
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<BackendAdapter>> ReferenceBackend::MakeAdapter(
    const LoraAdapter& adapter) const {
  std::unique_ptr<BackendAdapter> made;
  PENSTOCK_RETURN_IF_ERROR(Guarded([&] {
    made = std::make_unique<ReferenceAdapter>(adapter, ToScalarType(options_.dtype), device_);
    return absl::OkStatus();
  }));
  return made;
}

void ReferenceBackend::TakeAdapters(const RaggedBatch& batch) {
  std::vector<const ReferenceAdapter*>& rows = tensors_.row_adapters;
  rows.clear();
  tensors_.logit_adapters.clear();
  const auto none = [](const RaggedSegment& segment) { return segment.adapter == nullptr; };
  if (std::ranges::all_of(batch.segments, none)) return;
  for (const RaggedSegment& segment : batch.segments) {
    rows.resize(rows.size() + segment.query_count,
                static_cast<const ReferenceAdapter*>(segment.adapter));
  }
  for (const std::uint32_t row : batch.logit_rows) tensors_.logit_adapters.push_back(rows[row]);
}

const SegmentInputs* ReferenceBackend::FindCandidates(std::uint32_t index, std::size_t rows) const {
  if (index >= tensors_.inputs.segments.size()) return nullptr;
  const SegmentInputs& segment = tensors_.inputs.segments[index];
  const bool found = segment.candidates() && static_cast<std::size_t>(segment.query_count) >= rows;
  return found ? &segment : nullptr;
}

absl::Status ReferenceBackend::Similarities(std::uint32_t segment, std::span<float> out) {
  const SegmentInputs* candidates = FindCandidates(segment, out.size());
  if (candidates == nullptr) return NotCandidates(segment, out.size());
  return Guarded([&] {
    const at::Tensor plane = tensors_.cache.Hidden(*candidates, candidates->context_length);
    const at::Tensor own = units_.narrow(0, candidates->query_start, candidates->query_count);
    const at::Tensor largest = at::mm(plane, own.t()).amax(0).cpu().contiguous();
    std::copy_n(largest.data_ptr<float>(), out.size(), out.begin());
    return absl::OkStatus();
  });
}

absl::Status ReferenceBackend::CommitCandidates(std::span<const CandidateChoice> choices) {
  const auto all = std::count_if(tensors_.inputs.segments.begin(), tensors_.inputs.segments.end(),
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
  for (std::uint32_t group = 0; group < program().KvGroups(); ++group) {
    const GroupInputs& own = segment.groups[group];
    tensors_.cache.CopyPosition(group, own.first_own_slot + row, own.commit_slot);
  }
  // Its logit row was that of the first candidate.
  tensors_.Whole(Buffer::kSelected)
      .select(0, segment.logit_index)
      .copy_(LastNorm().select(0, segment.query_start + row));
}

// Writes unit vectors of all rows to the plane. Similarities reads those of candidates.
void ReferenceBackend::WriteHidden() {
  const at::Tensor rows = LastNorm().narrow(0, 0, tensors_.rows.count).to(at::kFloat);
  const at::Tensor lengths = rows.square().sum(-1, true).sqrt_();
  units_ = rows.div(lengths.masked_fill(lengths.eq(0), 1));
  tensors_.cache.WriteHidden(tensors_.inputs.kv_slots[0], units_);
}

absl::Status ReferenceBackend::KeepDrafts(std::span<const DraftsKept> kept) {
  return Guarded([&]() -> absl::Status {
    for (const DraftsKept& one : kept) {
      const bool known = one.segment < tensors_.inputs.segments.size();
      if (!known || one.rows > tensors_.inputs.segments[one.segment].drafts) return NotDrafts(one);
      const SegmentInputs& segment = tensors_.inputs.segments[one.segment];
      for (const DeltaStates& states : tensors_.states) {
        const std::int64_t last = states.sequences + segment.first_draft + one.rows - 1;
        if (one.rows > 0) states.Copy(last, segment.state);
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<TensorView> ReferenceBackend::Logits(std::uint32_t first, std::uint32_t count) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckLogitRows(first, count, limits_, static_cast<std::size_t>(logit_count_)));
  PENSTOCK_RETURN_IF_ERROR(Guarded([this, first, count]() -> absl::Status {
    tensors_.rows = {first, count, PadRows(count)};
    PENSTOCK_RETURN_IF_ERROR(Runner().RunAll(program().head));
    if (program().part.world > 1) return absl::OkStatus();
    tensors_.host_logits.narrow(0, 0, count)
        .copy_(tensors_.Whole(Buffer::kLogits).narrow(0, 0, count));
    return absl::OkStatus();
  }));
  // The copy to the host waited for the device, so the collectives are done.
  if (communicator_ != nullptr) PENSTOCK_RETURN_IF_ERROR(communicator_->Health());
  return TensorView::Matrix(tensors_.host_logits.data_ptr(), count, program().vocabulary,
                            DType::kFloat32);
}

std::uint64_t ReferenceBackend::MemoryBytes() const {
  std::uint64_t bytes = tensors_.cache.Bytes();
  for (const DeltaStates& states : tensors_.states) bytes += states.Bytes();
  const auto add = [&bytes](const at::Tensor& tensor) {
    if (tensor.defined()) bytes += tensor.nbytes();
  };
  for (const at::Tensor& tensor : tensors_.weights) add(tensor);
  for (const at::Tensor& tensor : tensors_.buffers) add(tensor);
  for (const RopeAngles& rope : ropes_) {
    add(rope.cos);
    add(rope.sin);
  }
  for (const at::Tensor* tensor : {&tensors_.reduce, &tensors_.gathered, &tensors_.host_logits})
    add(*tensor);
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeReferenceBackend(ReferenceOptions options) {
  if (options.program.head.empty()) {
    return absl::UnimplementedError(
        "backend reference computes no vectors of texts; backend cpu does");
  }
  auto backend = std::make_unique<ReferenceBackend>(std::move(options));
  PENSTOCK_RETURN_IF_ERROR(backend->Initialize());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace penstock::shard
