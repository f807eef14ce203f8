#include "shard/backend/cuda/program_runner.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "common/status.h"
#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/paged_attention.h"
#include "shard/model/rope_table.h"

namespace penstock::shard::cuda {
namespace {

// For more rows, the library's products are faster.
constexpr std::uint32_t kMostFusedRows = 8;

// A group of rows reads a quantized matrix once: a byte per weight. Expanding it first moves five
// bytes per weight, with the product by the library.
constexpr std::uint32_t kMostGroupedRows = 3 * MostSkinnyRows(WeightForm::kFp8);

HeadShape Shape(const shard::HeadShape& heads) {
  return {heads.query_heads, heads.kv_heads, heads.key_dim};
}

// Others have the model's dtype.
bool HoldsFloats(Buffer buffer) { return buffer == Buffer::kSquares; }

// The widest sum over the ranks.
std::uint32_t WidestSum(const Program& program) {
  std::uint32_t widest = 0;
  for (const Op& op : program.body) {
    const auto* sum = std::get_if<AllReduceOp>(&op);
    if (sum != nullptr) widest = std::max(widest, program.Width(sum->buffer));
  }
  return widest;
}

absl::StatusOr<GpuMemory> Uploaded(Gpu& gpu, const void* data, std::size_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::OnDevice(gpu, bytes));
  PENSTOCK_RETURN_IF_ERROR(gpu.Upload(memory.data(), data, bytes));
  return memory;
}

}  // namespace

absl::Status ProgramRunner::Prepare(const Limits& limits, Communicator* communicator) {
  communicator_ = communicator;
  for (std::size_t i = 0; i < kBufferCount; ++i) {
    const auto buffer = static_cast<Buffer>(i);
    const std::uint64_t rows = buffer == Buffer::kLogits ? limits.logit_rows : limits.rows;
    const std::size_t element = HoldsFloats(buffer) ? sizeof(float) : DTypeBytes(dtype_);
    buffers_[i] = GpuMemory();
    PENSTOCK_ASSIGN_OR_RETURN(buffers_[i],
                              GpuMemory::OnDevice(gpu_, rows * program_.Width(buffer) * element));
  }
  PENSTOCK_RETURN_IF_ERROR(
      experts_.Prepare(limits.rows, [this](WeightIndex index) { return Weight(index); }));
  slopes_.clear();
  for (const Op& op : program_.body) {
    const auto* attention = std::get_if<AttentionOp>(&op);
    if (attention == nullptr || attention->alibi.slopes.empty()) continue;
    const std::vector<float>& slopes = attention->alibi.slopes;
    PENSTOCK_ASSIGN_OR_RETURN(slopes_[attention],
                              Uploaded(gpu_, slopes.data(), slopes.size() * sizeof(float)));
  }
  angles_.clear();
  for (const RopeSpec& rope : program_.ropes) {
    Angles& angles = angles_.emplace_back();
    if (rope.DependsOnLength()) continue;
    const RopeTable table = BuildRopeTable(rope, limits.positions);
    const std::size_t bytes = table.cos.size() * sizeof(float);
    PENSTOCK_ASSIGN_OR_RETURN(angles.cos, Uploaded(gpu_, table.cos.data(), bytes));
    PENSTOCK_ASSIGN_OR_RETURN(angles.sin, Uploaded(gpu_, table.sin.data(), bytes));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      workspace_, GpuMemory::OnDevice(gpu_, WorkspaceFloats(limits.items, heads_) * sizeof(float)));
  if (limits.rows > MostGroupedRows()) {
    PENSTOCK_ASSIGN_OR_RETURN(expanded_, GpuMemory::OnDevice(gpu_, weights_.MostExpandedBytes()));
  }
  const std::uint64_t share = program_.Width(Buffer::kLogits);
  const std::uint64_t wide = std::max<std::uint64_t>(
      std::uint64_t{limits.rows} * WidestSum(program_), limits.logit_rows * share);
  if (program_.part.world > 1) {
    PENSTOCK_ASSIGN_OR_RETURN(wide_, GpuMemory::OnDevice(gpu_, wide * sizeof(float)));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      logits_,
      GpuMemory::OnDevice(gpu_, program_.part.world * limits.logit_rows * share * sizeof(float)));
  return gpu_.Synchronize();
}

absl::Status ProgramRunner::TuneGemms(std::uint32_t rows) {
  if (choices_.batch_invariant) return absl::OkStatus();
  for (const std::vector<Op>* ops : {&program_.body, &program_.head}) {
    for (const Op& op : *ops) {
      const auto* linear = std::get_if<LinearOp>(&op);
      if (linear == nullptr) continue;
      const bool head = ops == &program_.head;
      const std::uint32_t most = static_cast<std::uint32_t>(
          buffers_[static_cast<std::size_t>(linear->out)].bytes() / DTypeBytes(dtype_) /
          std::max(1u, program_.Width(linear->out)));
      if (head && rows > most) continue;
      const LinearArgs args = ArgsOf(*linear, rows, 0);
      if (!InGroups(args)) PENSTOCK_RETURN_IF_ERROR(gpu_.TuneLinear(Expanded(args), dtype_));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramRunner::RunBody(const DeviceInputs& inputs, CacheView cache,
                                    const std::int32_t* samples) {
  return RunAll(program_.body, {&inputs, cache, 0, inputs.rows, samples});
}

absl::Status ProgramRunner::RunHead(std::uint32_t first, std::uint32_t count) {
  PENSTOCK_RETURN_IF_ERROR(RunAll(program_.head, {nullptr, {}, first, count, nullptr}));
  if (program_.part.world > 1) return absl::OkStatus();
  return WidenLogits(static_cast<float*>(logits_.data()),
                     std::uint64_t{count} * program_.Width(Buffer::kLogits));
}

absl::Status ProgramRunner::WidenLogits(float* to, std::uint64_t count) {
  PENSTOCK_RETURN_IF_ERROR(Widen(Rows(Buffer::kLogits), to, count, dtype_, gpu_.stream()));
  for (const Op& op : program_.head) {
    const auto* scale = std::get_if<ScaleLogitsOp>(&op);
    if (scale == nullptr) continue;
    return ScaleLogits(to, count, scale->scale, scale->softcap, gpu_.stream());
  }
  return absl::OkStatus();
}

absl::Status ProgramRunner::RunAll(const std::vector<Op>& ops, const Step& step) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (const GatedActivationOp* gate = GateToFuse(std::span(ops).subspan(i)); gate != nullptr) {
      SkinnyArgs args{ArgsOf(std::get<LinearOp>(ops[i]), step.rows, step.first), true};
      args.linear.out = Rows(gate->out);
      const bool few = step.rows <= kMostFusedRows || args.linear.form != WeightForm::kPlain;
      if (parts_.fusion && few && IsSkinny(args, dtype_)) {
        PENSTOCK_RETURN_IF_ERROR(SkinnyLinear(args, gpu_.stream()));
        ++i;  // the gate is done
        continue;
      }
    }
    PENSTOCK_RETURN_IF_ERROR(
        std::visit([this, &step](const auto& typed) { return Run(typed, step); }, ops[i]));
  }
  return absl::OkStatus();
}

absl::Status ProgramRunner::Run(const EmbedOp& op, const Step& step) {
  return Embed({step.inputs->tokens, Weight(op.table), Rows(op.out), step.rows,
                program_.Width(op.out), static_cast<std::int32_t>(program_.part.first_vocabulary),
                static_cast<std::int32_t>(program_.part.vocabulary), step.inputs->newest,
                step.samples, op.scale},
               dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const PositionsOp& op, const Step& step) {
  const std::uint32_t entries = op.table == kNoWeight ? 0 : weights_.RowsOf(op.table);
  return AddPositions({step.inputs->positions, Weight(op.table), Rows(op.out), step.rows,
                       program_.Width(op.out), op.offset, entries},
                      dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const NormOp& op, const Step& step) {
  const void* add = op.add == Buffer::kNone ? nullptr : Rows(op.add);
  const NormArgs args{
      Rows(op.in),           add,    Weight(op.weight), Rows(op.out), step.rows,
      program_.Width(op.in), op.eps, Weight(op.bias),   op.add_scale, op.weight_offset};
  switch (op.kind) {
    case NormKind::kRms:
      return AddRmsNorm(args, dtype_, gpu_.stream());
    case NormKind::kLayer:
      return AddLayerNorm(args, dtype_, gpu_.stream());
    case NormKind::kCopy:
      return AddAndCopy(args, dtype_, gpu_.stream());
  }
  return absl::InternalError("a norm without a kernel");
}

absl::Status ProgramRunner::Run(const LinearOp& op, const Step& step) {
  const LinearArgs args = ArgsOf(op, step.rows, step.first);
  if (InGroups(args)) return MultiplyInGroups(args);
  if (args.form != WeightForm::kPlain) {
    PENSTOCK_RETURN_IF_ERROR(
        ExpandRows({expanded_.data(), const_cast<void*>(args.weight),
                    const_cast<float*>(args.scales), args.out_width, args.in_width, args.form},
                   gpu_.stream()));
  }
  return gpu_.Linear(Expanded(args), dtype_);
}

std::uint32_t ProgramRunner::MostGroupedRows() const {
  if (choices_.batch_invariant) return std::numeric_limits<std::uint32_t>::max();
  return parts_.skinny_products ? kMostGroupedRows : 0;
}

// Whether SkinnyLinear computes the product, whatever is measured.
bool ProgramRunner::InGroups(const LinearArgs& args) const {
  return choices_.batch_invariant ||
         (args.form != WeightForm::kPlain && args.rows <= MostGroupedRows());
}

// The product with the weights that ExpandRows writes.
LinearArgs ProgramRunner::Expanded(LinearArgs args) const {
  if (args.form == WeightForm::kPlain) return args;
  args.weight = expanded_.data();
  args.form = WeightForm::kPlain;
  args.scales = nullptr;
  return args;
}

// Each group of rows reads the weights again.
absl::Status ProgramRunner::MultiplyInGroups(LinearArgs args) {
  const std::uint32_t rows = args.rows;
  const std::uint32_t most = MostSkinnyRows(args.form);
  const std::size_t element = DTypeBytes(dtype_);
  for (std::uint32_t first = 0; first < rows; first += most) {
    args.rows = std::min(most, rows - first);
    PENSTOCK_RETURN_IF_ERROR(SkinnyLinear({args}, gpu_.stream()));
    args.in = static_cast<const std::byte*>(args.in) + args.rows * args.in_width * element;
    args.out = static_cast<std::byte*>(args.out) + args.rows * args.out_width * element;
  }
  return absl::OkStatus();
}

LinearArgs ProgramRunner::ArgsOf(const LinearOp& op, std::uint32_t rows,
                                 std::uint32_t first) const {
  LinearArgs args;
  args.in = Rows(op.in, op.in == Buffer::kSelected ? first : 0);
  args.weight = Weight(op.weight);
  args.form = weights_.FormOf(op.weight);
  args.scales = weights_.ScalesOf(op.weight);
  args.bias = Weight(op.bias);
  args.out = Rows(op.out);
  args.rows = rows;
  args.in_width = weights_.ColumnsOf(op.weight);
  args.out_width = weights_.RowsOf(op.weight);
  args.accumulate = op.accumulate;
  return args;
}

absl::Status ProgramRunner::Run(const HeadNormOp& op, const Step& step) {
  return HeadNorm({Rows(op.qkv), Weight(op.query_weight), Weight(op.key_weight), Shape(op.heads),
                   step.rows, op.eps, op.kind == NormKind::kLayer, Weight(op.query_bias),
                   Weight(op.key_bias), op.by_head, op.weight_offset, op.plain, op.values},
                  dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const SquaresOp& op, const Step& step) {
  return SumSquares({Rows(op.qkv), static_cast<float*>(Rows(op.out)), Shape(op.heads), step.rows},
                    dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const WidthNormOp& op, const Step& step) {
  return WidthNorm({Rows(op.qkv), static_cast<const float*>(Rows(op.squares)),
                    Weight(op.query_weight), Weight(op.key_weight), Shape(op.heads), step.rows,
                    op.query_elements, op.key_elements, op.eps},
                   dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const ClampOp& op, const Step& step) {
  return Clamp(Rows(op.buffer), std::uint64_t{step.rows} * op.width, op.limit, dtype_,
               gpu_.stream());
}

void ProgramRunner::AddAngles(const RopeKvWriteOp& op, const Step& step, RopeArgs& args) const {
  if (op.rope == kNoRope) return;
  const auto rope = static_cast<std::size_t>(op.rope);
  const RopeSpec& spec = program_.ropes[rope];
  args.rotary = spec.dim;
  args.by_row = spec.DependsOnLength();
  if (args.by_row) {
    args.cos = step.inputs->angles[rope].cos;
    args.sin = step.inputs->angles[rope].sin;
  } else {
    args.cos = static_cast<const float*>(angles_[rope].cos.data());
    args.sin = static_cast<const float*>(angles_[rope].sin.data());
  }
}

absl::Status ProgramRunner::Run(const RopeKvWriteOp& op, const Step& step) {
  RopeArgs args;
  args.qkv = Rows(op.qkv);
  args.positions = step.inputs->positions;
  args.shape = Shape(op.heads);
  args.rows = step.rows;
  AddAngles(op, step, args);
  args.growth_rate = op.growth.rate;
  args.growth_period = op.growth.period;
  args.growth_first = op.growth.first;
  args.fp8_cache = choices_.fp8_cache;
  if (op.writes) {
    args.cache_rows = step.inputs->cache_rows[program_.caches[op.cache].kv_group];
    args.keys = step.cache[op.cache].keys;
    args.values = step.cache[op.cache].values;
  }
  return RopeKvWrite(args, dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const AttentionOp& op, const Step& step) {
  const auto& windows = step.inputs->attention;
  const auto found = std::find_if(windows.begin(), windows.end(), [&op](const AttentionArgs& a) {
    return a.window == op.window && a.chunk == op.chunk;
  });
  if (found == windows.end()) return absl::InternalError("attention with an unplanned window");
  AttentionArgs args = *found;
  args.qkv = Rows(op.qkv);
  args.keys = step.cache[op.cache].keys;
  args.values = step.cache[op.cache].values;
  args.out = Rows(op.out);
  args.workspace = static_cast<float*>(workspace_.data());
  args.scale = op.scale;
  args.fp8_cache = choices_.fp8_cache;
  args.softcap = op.softcap;
  args.sinks = Weight(op.sinks);
  if (!op.alibi.slopes.empty()) {
    args.slopes = static_cast<const float*>(slopes_.at(&op).data());
    args.rounded_scale = op.alibi.rounded_scale;
  }
  return PagedAttention(args, dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const GatedActivationOp& op, const Step& step) {
  return ActivateGate({Rows(op.in), Rows(op.out), step.rows, op.width, op.activation}, dtype_,
                      gpu_.stream());
}

absl::Status ProgramRunner::Run(const ActivationOp& op, const Step& step) {
  return Activate({Rows(op.in), Rows(op.out), step.rows, op.width, op.activation}, dtype_,
                  gpu_.stream());
}

absl::Status ProgramRunner::Run(const GateRowsOp& op, const Step& step) {
  return MultiplyBySigmoid(
      {Rows(op.buffer), Rows(op.gate), step.rows, program_.Width(op.buffer), true}, dtype_,
      gpu_.stream());
}

absl::Status ProgramRunner::Run(const GateOp& op, const Step& step) {
  return MultiplyBySigmoid({Rows(op.buffer), Rows(op.gate), step.rows, op.width}, dtype_,
                           gpu_.stream());
}

absl::Status ProgramRunner::Run(const ExpertsOp& op, const Step& step) {
  return experts_.Run(op, {Rows(op.in), Rows(op.scores), Rows(op.out)}, step.rows);
}

// WidenLogits scales them.
absl::Status ProgramRunner::Run(const ScaleLogitsOp&, const Step&) { return absl::OkStatus(); }

// CheckCudaBackend refuses programs with these.
absl::Status ProgramRunner::Run(const GroupNormOp&, const Step&) {
  return absl::InternalError("norms of groups have no kernel");
}
absl::Status ProgramRunner::Run(const MultiplyOp&, const Step&) {
  return absl::InternalError("products of columns have no kernel");
}
absl::Status ProgramRunner::Run(const ScaleOp&, const Step&) {
  return absl::InternalError("learned scales have no kernel");
}
absl::Status ProgramRunner::Run(const LatentWriteOp&, const Step&) {
  return absl::InternalError("latent attention has no kernel");
}
absl::Status ProgramRunner::Run(const HeadLinearOp&, const Step&) {
  return absl::InternalError("latent attention has no kernel");
}
absl::Status ProgramRunner::Run(const DeltaNetOp&, const Step&) {
  return absl::InternalError("gated delta nets have no kernel");
}

absl::Status ProgramRunner::Run(const ShortConvOp&, const Step&) {
  return absl::InternalError("short convolutions have no kernel");
}
absl::Status ProgramRunner::Run(const XieluOp&, const Step&) {
  return absl::InternalError("xIELU has no kernel");
}

absl::Status ProgramRunner::Run(const SelectRowsOp& op, const Step& step) {
  return SelectRows({Rows(op.in), step.inputs->logit_rows, Rows(op.out), step.inputs->logit_count,
                     program_.Width(op.out)},
                    dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const AllReduceOp& op, const Step& step) {
  const std::uint64_t count = std::uint64_t{step.rows} * program_.Width(op.buffer);
  if (dtype_ == DType::kFloat32 || HoldsFloats(op.buffer)) {
    return communicator_->AllReduceSum(static_cast<float*>(Rows(op.buffer)), count);
  }
  auto* wide = static_cast<float*>(wide_.data());
  PENSTOCK_RETURN_IF_ERROR(Widen(Rows(op.buffer), wide, count, dtype_, gpu_.stream()));
  PENSTOCK_RETURN_IF_ERROR(communicator_->AllReduceSum(wide, count));
  return Narrow(wide, Rows(op.buffer), count, dtype_, gpu_.stream());
}

absl::Status ProgramRunner::Run(const AllGatherOp& op, const Step& step) {
  const std::uint64_t count = std::uint64_t{step.rows} * program_.Width(op.buffer);
  auto* wide = static_cast<float*>(wide_.data());
  PENSTOCK_RETURN_IF_ERROR(WidenLogits(wide, count));
  return communicator_->AllGather(wide, count * sizeof(float), logits_.data());
}

void* ProgramRunner::Rows(Buffer buffer, std::uint32_t first) const {
  return buffers_[static_cast<std::size_t>(buffer)].At(std::size_t{first} * program_.Width(buffer) *
                                                       DTypeBytes(dtype_));
}

std::uint64_t ProgramRunner::MemoryBytes() const {
  std::uint64_t bytes = weights_.bytes() + experts_.MemoryBytes();
  for (const GpuMemory& memory : buffers_) bytes += memory.bytes();
  for (const Angles& angles : angles_) bytes += angles.cos.bytes() + angles.sin.bytes();
  for (const GpuMemory* memory : {&workspace_, &wide_, &logits_, &expanded_}) {
    bytes += memory->bytes();
  }
  return bytes;
}

}  // namespace penstock::shard::cuda
