#include "shard/backend/reference/operation_runner.h"

#include <type_traits>
#include <variant>

#include "common/status.h"
#include "shard/backend/reference/attention.h"
#include "shard/backend/reference/experts.h"
#include "shard/backend/reference/latent.h"
#include "shard/backend/reference/operations.h"

namespace penstock::shard {

absl::Status OperationRunner::RunAll(const std::vector<Op>& ops) {
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

void OperationRunner::Run(const EmbedOp& op) {
  at::Tensor out = Padded(op.out);
  at::index_select_out(out, Weight(op.table), 0, tensors_.inputs.token_rows);
  if (tensors_.inputs.token_mask.defined()) out.mul_(tensors_.inputs.token_mask);
  if (op.scale != 1.0f) out.mul_(op.scale);
}

void OperationRunner::Run(const PositionsOp& op) {
  const at::Tensor rows = tensors_.inputs.positions.add(static_cast<std::int64_t>(op.offset));
  if (op.table == kNoWeight) {
    AddSinusoids(rows, Padded(op.out));
  } else {
    Padded(op.out).add_(at::index_select(Weight(op.table), 0, rows));
  }
}

void OperationRunner::Run(const NormOp& op) {
  const at::Tensor in = Padded(op.in);
  if (op.add != Buffer::kNone) in.add_(Padded(op.add), op.add_scale);
  switch (op.kind) {
    case NormKind::kLayer:
      return LayerNorm(in, Weight(op.weight), op.weight_offset, Weight(op.bias), op.eps,
                       Padded(op.out));
    case NormKind::kRms:
      return RmsNorm(in, Weight(op.weight), op.weight_offset, op.eps, Padded(op.out));
    case NormKind::kCopy:
      Padded(op.out).narrow(1, 0, in.size(1)).copy_(in);
      return;
  }
}

void OperationRunner::Run(const LinearOp& op) {
  const at::Tensor& weight = Weight(op.weight);
  const at::Tensor in = Padded(op.in).narrow(1, 0, weight.size(1));
  const at::Tensor out = Padded(op.out).narrow(1, 0, weight.size(0));
  const at::Tensor sum = op.accumulate ? at::empty(out.sizes(), out.options()) : out;
  Linear(in, weight, Weight(op.bias), sum);
  if (op.accumulate) out.add_(sum);
  if (!tensors_.row_adapters.empty()) AddAdapters(op, in, out);
}

// Row by row, so that the bits of a row do not depend on the others.
void OperationRunner::AddAdapters(const LinearOp& op, const at::Tensor& in, const at::Tensor& out) {
  const bool logits = op.in == Buffer::kSelected;
  const auto& adapters = logits ? tensors_.logit_adapters : tensors_.row_adapters;
  for (std::int64_t row = 0; row < tensors_.rows.count; ++row) {
    const ReferenceAdapter* adapter =
        adapters[static_cast<std::size_t>(row + (logits ? tensors_.rows.first : 0))];
    if (adapter != nullptr) adapter->AddTo(op.weight, in.narrow(0, row, 1), out.narrow(0, row, 1));
  }
}

at::Tensor OperationRunner::Heads(Buffer qkv, std::int64_t column, std::int64_t heads,
                                  std::int64_t dim) {
  return Padded(qkv).narrow(1, column, heads * dim).view({tensors_.rows.padded_count, heads, dim});
}

void OperationRunner::Run(const HeadNormOp& op) {
  const HeadShape& shape = op.heads;
  const auto norm = [&](std::uint32_t column, std::uint32_t heads, std::uint32_t dim,
                        WeightIndex weight, WeightIndex bias) {
    const at::Tensor rows = Heads(op.qkv, column, heads, dim);
    at::Tensor factors = Weight(weight);
    if (op.by_head && factors.defined()) factors = factors.view({heads, dim});
    if (op.kind == NormKind::kLayer) {
      return LayerNorm(rows, factors, op.weight_offset, Weight(bias), op.eps, rows);
    }
    RmsNorm(rows, factors, op.weight_offset, op.eps, rows);
  };
  const auto wanted = [&op](WeightIndex weight) { return op.plain || weight != kNoWeight; };
  const std::uint32_t keys = shape.QueryWidth();
  if (wanted(op.query_weight)) {
    norm(0, shape.query_heads, shape.key_dim, op.query_weight, op.query_bias);
  }
  if (wanted(op.key_weight)) {
    norm(keys, shape.kv_heads, shape.key_dim, op.key_weight, op.key_bias);
  }
  if (op.values) {
    norm(keys + shape.KeyWidth(), shape.kv_heads, shape.value_dim, kNoWeight, kNoWeight);
  }
}

void OperationRunner::Run(const SquaresOp& op) {
  const HeadShape& shape = op.heads;
  const at::Tensor qkv = Padded(op.qkv).to(at::kFloat);
  const at::Tensor out = Padded(op.out);
  out.select(1, 0).copy_(qkv.narrow(1, 0, shape.QueryWidth()).square().sum(-1));
  out.select(1, 1).copy_(qkv.narrow(1, shape.QueryWidth(), shape.KeyWidth()).square().sum(-1));
}

void OperationRunner::Run(const WidthNormOp& op) {
  const HeadShape& shape = op.heads;
  const at::Tensor qkv = Padded(op.qkv), squares = Padded(op.squares);
  ScaleBySquares(qkv.narrow(1, 0, shape.QueryWidth()), squares.select(1, 0), op.query_elements,
                 Weight(op.query_weight), op.eps);
  ScaleBySquares(qkv.narrow(1, shape.QueryWidth(), shape.KeyWidth()), squares.select(1, 1),
                 op.key_elements, Weight(op.key_weight), op.eps);
}

void OperationRunner::Run(const ClampOp& op) {
  Padded(op.buffer).narrow(1, 0, op.width).clamp_(-op.limit, op.limit);
}

void OperationRunner::Run(const RopeKvWriteOp& op) {
  const HeadShape& shape = op.heads;
  if (op.rope != kNoRope) {
    const RopeAngles& angles = tensors_.ropes[static_cast<std::size_t>(op.rope)];
    const std::uint32_t heads = shape.query_heads + (op.keys ? shape.kv_heads : 0);
    RotateHalves(Heads(op.qkv, 0, heads, shape.key_dim), angles.cos, angles.sin);
  }
  if (op.growth.rate != 0.0f) {
    const at::Tensor steps =
        tensors_.inputs.positions.add(static_cast<std::int64_t>(op.growth.first))
            .floor_divide(static_cast<std::int64_t>(op.growth.period));
    const at::Tensor factors = steps.to(at::kFloat).log1p_().mul_(op.growth.rate).add_(1.0);
    Padded(op.qkv).narrow(1, 0, shape.QueryWidth()).mul_(factors.unsqueeze(1));
  }
  if (!op.writes) return;
  const at::Tensor qkv = Whole(op.qkv).narrow(0, 0, tensors_.rows.count);
  const at::Tensor keys = qkv.narrow(1, shape.QueryWidth(), shape.KeyWidth());
  const at::Tensor values =
      qkv.narrow(1, shape.QueryWidth() + shape.KeyWidth(), shape.ValueWidth());
  tensors_.cache.Write(op.cache, SlotsOf(op.cache), keys, values);
}

void OperationRunner::Run(const AttentionOp& op) {
  const HeadShape& heads = op.heads;
  AttentionShape shape{heads.query_heads, heads.kv_heads, heads.key_dim, heads.value_dim,
                       op.scale,          op.window,      op.chunk,      op.softcap};
  if (op.sinks != kNoWeight) shape.sinks = Weight(op.sinks).to(at::kFloat);
  if (!op.alibi.slopes.empty()) {
    shape.slopes = at::from_blob(const_cast<float*>(op.alibi.slopes.data()), {op.heads.query_heads},
                                 at::kFloat)
                       .to(Whole(op.qkv).device());
    shape.rounded_scale = op.alibi.rounded_scale;
  }
  const at::Tensor queries = Whole(op.qkv).narrow(1, 0, op.heads.QueryWidth());
  const at::Tensor out = Whole(op.out).narrow(1, 0, op.heads.OutputWidth());
  for (const PartQueries& part : tensors_.part_queries) {
    PartAttention(shape, tensors_.cache, op.cache, part, queries, out);
  }
  for (const SegmentInputs& segment : tensors_.inputs.segments) {
    if (IsPartQuery(segment)) continue;
    const auto attend = segment.candidates() ? CandidateAttention : SegmentAttention;
    attend(shape, tensors_.cache, op.cache, segment, queries, out);
  }
}

void OperationRunner::Run(const GatedActivationOp& op) {
  const at::Tensor in = Padded(op.in), out = Padded(op.out).narrow(1, 0, op.width);
  Activate(in.narrow(1, 0, op.width), op.activation, out);
  out.mul_(in.narrow(1, op.width, op.width));
}

void OperationRunner::Run(const ActivationOp& op) {
  Activate(Padded(op.in).narrow(1, 0, op.width), op.activation,
           Padded(op.out).narrow(1, 0, op.width));
}

void OperationRunner::Run(const XieluOp& op) {
  Xielu(Padded(op.in).narrow(1, 0, op.width), Weight(op.positive), Weight(op.negative),
        Padded(op.out).narrow(1, 0, op.width));
}

void OperationRunner::Run(const ExpertsOp& op) {
  const auto weight = [this](WeightIndex index) -> const at::Tensor& { return Weight(index); };
  RunExperts(op, Padded(op.in), Padded(op.scores), weight, Padded(op.out));
}

void OperationRunner::Run(const GateRowsOp& op) {
  Padded(op.buffer).mul_(Padded(op.gate).sigmoid());
}

void OperationRunner::Run(const GroupNormOp& op) {
  const at::Tensor in = Padded(op.in);
  const at::Tensor groups = in.view({in.size(0), in.size(1) / op.size, op.size});
  RmsNorm(groups, Weight(op.weight), 0.0, op.eps, groups);
  Padded(op.out).add_(in).mul_(op.scale);
}

void OperationRunner::Run(const MultiplyOp& op) {
  Padded(op.buffer).narrow(1, 0, op.width).mul_(Padded(op.by).narrow(1, op.first, op.width));
}

void OperationRunner::Run(const ScaleOp& op) { Padded(op.buffer).mul_(Weight(op.weight)); }

void OperationRunner::Run(const GateOp& op) {
  const at::Tensor gate = Padded(op.gate).narrow(1, 0, op.width);
  Padded(op.buffer).narrow(1, 0, op.width).mul_(gate.sigmoid());
}

void OperationRunner::Run(const DeltaNetOp& op) {
  const DeltaWeights weights{Weight(op.convolution), Weight(op.decay), Weight(op.decay_bias),
                             Weight(op.norm)};
  const at::Tensor out = Whole(op.out).narrow(1, 0, op.ValueWidth());
  for (const SegmentInputs& segment : tensors_.inputs.segments) {
    DeltaNet(op, weights, segment, tensors_.states[op.state], Whole(op.in), out);
  }
}

void OperationRunner::Run(const ShortConvOp& op) {
  const at::Tensor out = Whole(op.out).narrow(1, 0, op.shape.channels);
  for (const SegmentInputs& segment : tensors_.inputs.segments) {
    ShortConv(op, Weight(op.convolution), Weight(op.bias), segment, tensors_.states[op.state],
              Whole(op.in), out);
  }
}

void OperationRunner::Run(const ScaleLogitsOp& op) {
  const at::Tensor logits = Padded(op.buffer);
  if (op.scale != 1.0f) logits.mul_(op.scale);
  if (op.softcap != 0.0f) SoftCap(logits, op.softcap);
}

void OperationRunner::Run(const LatentWriteOp& op) {
  const std::int64_t width = std::int64_t{op.latent_dim} + op.rope_dim;
  const RopeAngles& angles = tensors_.ropes[static_cast<std::size_t>(op.rope)];
  PrepareLatents(op, Weight(op.weight), angles.cos, angles.sin,
                 Heads(op.queries, 0, op.heads, std::int64_t{op.nope_dim} + op.rope_dim),
                 Heads(op.latent, 0, 1, width));
  const at::Tensor latents = Whole(op.latent).narrow(0, 0, tensors_.rows.count).narrow(1, 0, width);
  tensors_.cache.Write(op.cache, SlotsOf(op.cache), latents, at::Tensor());
}

void OperationRunner::Run(const HeadLinearOp& op) {
  const auto heads = static_cast<std::int64_t>(op.matrices.size());
  const std::int64_t rest = op.rest;
  std::vector<at::Tensor> matrices;
  for (const WeightIndex index : op.matrices) matrices.push_back(Weight(index));
  MultiplyHeads(op, matrices, Heads(op.in, 0, heads, op.in_dim + rest),
                Heads(op.out, 0, heads, op.out_dim + rest));
}

void OperationRunner::Run(const SelectRowsOp& op) {
  const std::int64_t count = tensors_.inputs.logit_rows.size(0);
  if (count == 0) return;
  at::Tensor out = Whole(op.out).narrow(0, 0, count);
  const at::Tensor in = Whole(op.in).narrow(1, 0, out.size(1));
  at::index_select_out(out, in, 0, tensors_.inputs.logit_rows);
}

absl::Status OperationRunner::Run(const AllReduceOp& op) {
  at::Tensor data = Whole(op.buffer).narrow(0, 0, tensors_.rows.count);
  const auto count = static_cast<std::size_t>(data.numel());
  if (data.scalar_type() == at::kFloat) {
    return communicator_->AllReduceSum(data.data_ptr<float>(), count);
  }
  const at::Tensor staging = tensors_.reduce.narrow(0, 0, data.numel()).view(data.sizes());
  staging.copy_(data);
  PENSTOCK_RETURN_IF_ERROR(communicator_->AllReduceSum(staging.data_ptr<float>(), count));
  data.copy_(staging);
  return absl::OkStatus();
}

absl::Status OperationRunner::Run(const AllGatherOp& op) {
  const std::int64_t world = program_.part.world;
  const std::int64_t share = program_.Width(op.buffer);
  const at::Tensor mine =
      Whole(op.buffer).narrow(0, 0, tensors_.rows.count).to(at::kFloat).contiguous();
  PENSTOCK_RETURN_IF_ERROR(
      communicator_->AllGather(mine.data_ptr(), mine.nbytes(), tensors_.gathered.data_ptr()));
  const at::Tensor all = tensors_.gathered.narrow(0, 0, world * tensors_.rows.count * share)
                             .view({world, tensors_.rows.count, share})
                             .transpose(0, 1)
                             .reshape({tensors_.rows.count, world * share})
                             .narrow(1, 0, program_.vocabulary);
  tensors_.host_logits.narrow(0, 0, tensors_.rows.count).copy_(all);
  return absl::OkStatus();
}

}  // namespace penstock::shard
