#include "shard/backend/cpu/experts/expert_stage.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/round_up.h"
#include "common/status.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kStrideUnit = 32;   // elements: whole vectors of every type
constexpr std::uint32_t kPieceUnits = 8;  // whole panels

bool IsOwn(const Expert& expert) { return expert.gate_up != kNoWeight; }

// Writes the gate's result over the first half of the row.
void GateRow(const BoundedGate& gate, const float* bias, std::size_t width, float* row) {
  for (std::size_t i = 0; i < width; ++i) {
    const float g = std::min(row[i] + bias[i], gate.limit);
    const float u = std::clamp(row[width + i] + bias[width + i], -gate.limit, gate.limit);
    row[i] = (u + 1.0f) * g / (1.0f + std::exp(-gate.alpha * g));
  }
}

}  // namespace

absl::StatusOr<ExpertBuffers> ExpertBuffers::Create(const Program& program, const Kernels& kernels,
                                                    const FormatKernels& format, std::size_t rows) {
  std::size_t slots = 0, width = 0;
  bool bounded = false;
  for (const Op& op : program.body) {
    const auto* experts = std::get_if<ExpertsOp>(&op);
    if (experts == nullptr) continue;
    slots = std::max<std::size_t>(slots, rows * experts->routing.chosen);
    width = std::max<std::size_t>(width, experts->width);
    bounded = bounded || experts->bounded_gate.IsSet();
  }
  ExpertBuffers buffers;
  if (slots == 0) return buffers;
  const std::size_t hidden = program.Width(Buffer::kHidden);
  const std::size_t activation = DTypeBytes(kernels.activation);
  std::size_t used = 0;
  const auto take = [&used](std::size_t bytes) {
    const std::size_t at = used;
    used += RoundUp(bytes + kCacheLineBytes, kPageBytes);
    return at;
  };
  const auto view = [&](std::size_t columns, std::size_t element, std::size_t& at) {
    BufferView made{nullptr, RoundUp(columns, kStrideUnit), element};
    at = take(slots * made.stride * element);
    return made;
  };
  std::size_t at[6] = {};
  buffers.in = view(hidden, activation, at[0]);
  buffers.middle = view(width, activation, at[1]);
  buffers.out = view(hidden, sizeof(float), at[2]);
  if (bounded) buffers.wide = view(2 * width, sizeof(float), at[5]);
  if (format.quantize != nullptr) {
    const std::size_t inner = std::max(hidden, width);
    buffers.integers.stride = RoundUp(inner, kStrideUnit) / format.pack * format.step_bytes;
    buffers.integers.group_stride = RoundUp(inner, format.group) / format.group;
    at[3] = take(slots * buffers.integers.stride);
    at[4] = take(slots * buffers.integers.group_stride * sizeof(IntegerGroup));
  }
  auto region = MemoryRegion::Allocate(used);
  if (!region.ok()) return WithContext(region.status(), "scratch of experts");
  buffers.region_ = std::move(*region);
  std::byte* const base = buffers.region_.data();
  buffers.in.data = base + at[0];
  buffers.middle.data = base + at[1];
  buffers.out.data = base + at[2];
  if (bounded) buffers.wide.data = base + at[5];
  if (format.quantize != nullptr) {
    buffers.integers.values = base + at[3];
    buffers.integers.groups = reinterpret_cast<IntegerGroup*>(base + at[4]);
  }
  return buffers;
}

ExpertStage::ExpertStage(const ExpertsOp& op, const Program& program, const Kernels& kernels,
                         const WeightStore& weights, const ExpertBuffers& expert_buffers,
                         StepBuffers& buffers, WorkerPool& pool)
    : op_(op),
      program_(program),
      kernels_(kernels),
      weights_(weights),
      own_(expert_buffers),
      buffers_(buffers),
      pool_(pool),
      own_expert_(*std::find_if(op.experts.begin(), op.experts.end(), IsOwn)),
      router_(op.routing, weights.Vector(op.routing.choice_bias),
              weights.Vector(op.routing.expert_scale)),
      scratch_(pool.threads()) {}

void ExpertStage::Run(std::size_t rows, std::size_t thread) {
  const std::size_t chosen = op_.routing.chosen;
  if (thread == 0) choices_.resize(rows * chosen);
  pool_.Barrier();
  const Share share = EvenShare(rows, pool_.threads(), thread);
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    router_.Choose(buffers_.View(op_.scores).Floats(row), scratch_[thread],
                   std::span(choices_).subspan(row * chosen, chosen));
  }
  pool_.Barrier();
  if (thread == 0) Sort(rows);
  pool_.Barrier();
  Gather(rows, thread);
  pool_.Barrier();
  Products(false, thread);
  pool_.Barrier();
  if (op_.bounded_gate.IsSet()) {
    Gate(rows * chosen, thread);
    pool_.Barrier();
  }
  const PackedMatrix& down = weights_.Matrix(own_expert_.down);
  if (down.kernels().quantize != nullptr) {
    QuantizeMiddle(rows * chosen, thread);
    pool_.Barrier();
  }
  Products(true, thread);
  pool_.Barrier();
  Sum(rows, thread);
}

// Gives the choices of expert 0 the first slots, and so on; among them rows ascend.
void ExpertStage::Sort(std::size_t rows) {
  const std::size_t experts = op_.experts.size();
  first_slots_.assign(experts + 1, 0);
  for (const Choice& choice : choices_) ++first_slots_[choice.expert + 1];
  for (std::size_t i = 0; i < experts; ++i) first_slots_[i + 1] += first_slots_[i];
  std::vector<std::uint32_t> next(first_slots_.begin(), first_slots_.end() - 1);
  slots_.resize(rows * op_.routing.chosen);
  for (std::size_t i = 0; i < choices_.size(); ++i) slots_[i] = next[choices_[i].expert]++;
  CutIntoPieces(false);
  CutIntoPieces(true);
}

void ExpertStage::CutIntoPieces(bool down) {
  pieces_[down].clear();
  next_[down] = 0;
  for (std::uint32_t i = 0; i < op_.experts.size(); ++i) {
    const Expert& expert = op_.experts[i];
    if (first_slots_[i] == first_slots_[i + 1] || !IsOwn(expert)) continue;
    const auto units =
        static_cast<std::uint32_t>(weights_.Matrix(down ? expert.down : expert.gate_up).units());
    for (std::uint32_t first = 0; first < units; first += kPieceUnits) {
      pieces_[down].push_back({i, first, std::min(kPieceUnits, units - first)});
    }
  }
}

void ExpertStage::Quantize(const PackedMatrix& matrix, const BufferView& from, std::size_t row,
                           std::size_t slot) const {
  matrix.kernels().quantize({from.Row(row), matrix.inner(),
                             own_.integers.values + slot * own_.integers.stride,
                             own_.integers.groups + slot * own_.integers.group_stride});
}

void ExpertStage::Gather(std::size_t rows, std::size_t thread) {
  const BufferView& from = buffers_.View(op_.in);
  const std::size_t chosen = op_.routing.chosen;
  const PackedMatrix& up = weights_.Matrix(own_expert_.gate_up);
  const bool quantized = up.kernels().quantize != nullptr;
  const std::size_t bytes = own_.in.stride * own_.in.element;
  const Share share = EvenShare(rows * chosen, pool_.threads(), thread);
  for (std::size_t i = share.first; i < share.first + share.count; ++i) {
    if (quantized && !op_.weigh_inputs) {
      Quantize(up, from, i / chosen, slots_[i]);
      continue;
    }
    std::memcpy(own_.in.Row(slots_[i]), from.Row(i / chosen), bytes);
    if (!op_.weigh_inputs) continue;
    kernels_.scale_activations(own_.in.Row(slots_[i]), up.inner(), choices_[i].weight);
    if (quantized) Quantize(up, own_.in, slots_[i], slots_[i]);
  }
}

void ExpertStage::Gate(std::size_t slots, std::size_t thread) {
  const Share share = EvenShare(slots, pool_.threads(), thread);
  std::size_t expert = 0;
  for (std::size_t slot = share.first; slot < share.first + share.count; ++slot) {
    while (first_slots_[expert + 1] <= slot) ++expert;
    if (!IsOwn(op_.experts[expert])) continue;
    float* const row = own_.wide.Floats(slot);
    GateRow(op_.bounded_gate, weights_.Vector(op_.experts[expert].gate_up_bias), op_.width, row);
    kernels_.copy({.input = row, .size = op_.width, .out = own_.middle.Row(slot)});
  }
}

void ExpertStage::QuantizeMiddle(std::size_t slots, std::size_t thread) {
  const PackedMatrix& down = weights_.Matrix(own_expert_.down);
  const Share share = EvenShare(slots, pool_.threads(), thread);
  for (std::size_t slot = share.first; slot < share.first + share.count; ++slot) {
    Quantize(down, own_.middle, slot, slot);
  }
}

void ExpertStage::Products(bool down, std::size_t thread) {
  const BufferView& in = down ? own_.middle : own_.in;
  const bool gated = !down && !op_.bounded_gate.IsSet();
  const BufferView& out = down ? own_.out : gated ? own_.middle : own_.wide;
  for (std::size_t i = next_[down]++; i < pieces_[down].size(); i = next_[down]++) {
    const Piece& piece = pieces_[down][i];
    const Expert& expert = op_.experts[piece.expert];
    const PackedMatrix& matrix = weights_.Matrix(down ? expert.down : expert.gate_up);
    const std::size_t slot = first_slots_[piece.expert];
    GemmArgs args;
    args.input = in.Row(slot);
    args.input_stride = in.stride;
    if (matrix.kernels().quantize != nullptr) {
      args.input = own_.integers.values + slot * own_.integers.stride;
      args.input_stride = own_.integers.stride;
      args.groups = own_.integers.groups + slot * own_.integers.group_stride;
      args.group_stride = own_.integers.group_stride;
      args.scales = matrix.scales();
    }
    args.rows = first_slots_[piece.expert + 1] - slot;
    args.weights = matrix.data();
    args.overflow = matrix.overflow();
    args.steps = matrix.steps();
    args.first_vector = piece.first * matrix.UnitVectors();
    args.vectors = piece.count * matrix.UnitVectors();
    args.out = out.Row(slot);
    args.out_stride = out.stride;
    args.out_columns = matrix.outputs();
    args.epilogue = gated ? Epilogue::kGate : Epilogue::kStore;
    args.activation = op_.activation;
    args.scratch = buffers_.Thread(thread).gemm;
    matrix.kernels().gemm(args);
  }
}

void ExpertStage::Sum(std::size_t rows, std::size_t thread) {
  const std::size_t chosen = op_.routing.chosen, width = program_.Width(op_.out);
  const BufferView& out = buffers_.View(op_.out);
  const Share share = EvenShare(rows, pool_.threads(), thread);
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    float* const to = out.Floats(row);
    if (!op_.accumulate) std::fill_n(to, width, 0.0f);
    for (std::size_t i = row * chosen; i < (row + 1) * chosen; ++i) {
      const Expert& expert = op_.experts[choices_[i].expert];
      if (!IsOwn(expert)) continue;  // another rank adds it
      const float* const from = own_.out.Floats(slots_[i]);
      const float weight = op_.weigh_inputs ? 1.0f : choices_[i].weight;
      const float* const bias = weights_.Vector(expert.down_bias);
      if (bias == nullptr) {
        for (std::size_t j = 0; j < width; ++j) to[j] += weight * from[j];
      } else {
        for (std::size_t j = 0; j < width; ++j) to[j] += weight * (from[j] + bias[j]);
      }
    }
  }
}

}  // namespace penstock::shard::cpu
