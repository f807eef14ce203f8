#include "shard/backend/cpu/step_buffers.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "common/round_up.h"
#include "common/status.h"
#include "shard/backend/cpu/adapters/adapted_rows.h"
#include "shard/backend/cpu/attention/attention_plan.h"
#include "shard/backend/cpu/cache/prefault.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kStrideUnit = 32;  // elements: whole vectors of every type
// Floats for results of divided attention items, per thread.
constexpr std::size_t kSlotFloats = std::size_t{64} << 10;

// Rows at a distance of whole pages would share few lines of the first-level cache.
std::size_t StrideFor(std::size_t width, std::size_t element) {
  const std::size_t stride = RoundUp(width, kStrideUnit);
  return stride * element % kPageBytes == 0 ? stride + kStrideUnit : stride;
}

}  // namespace

bool HoldsActivations(Buffer buffer) {
  return buffer == Buffer::kNormed || buffer == Buffer::kAttention || buffer == Buffer::kMlp ||
         buffer == Buffer::kShared || buffer == Buffer::kSelected ||
         buffer == Buffer::kPerLayerGate || buffer == Buffer::kQueryLatent ||
         buffer == Buffer::kLatentMixed || buffer == Buffer::kDeltaOut;
}

struct StepBuffers::Sizes {
  const Program& program;
  const Kernels& kernels;
  const FormatKernels& format;
  const BackendLimits& limits;
  const ThreadPlacement& placement;
  std::uint32_t threads;

  // The most query heads of a K/V head, and the widest value, of all layers.
  HeadShape Largest() const {
    HeadShape largest{.query_heads = 1, .kv_heads = 1};
    for (const Op& op : program.body) {
      const auto* attention = std::get_if<AttentionOp>(&op);
      if (attention == nullptr) continue;
      largest.query_heads = std::max(
          largest.query_heads, static_cast<std::uint32_t>(HeadsOfPlan(program, *attention).group));
      largest.value_dim = std::max(largest.value_dim, attention->heads.value_dim);
    }
    return largest;
  }
  // The widest key of a cache of latents; 0 = there is none.
  std::size_t Latent() const {
    std::size_t widest = 0;
    for (const CacheShape& cache : program.caches) {
      if (cache.values_in_keys) widest = std::max<std::size_t>(widest, cache.key_dim);
    }
    return widest;
  }
  // The widest input and output of a HeadLinearOp; 0 = there is none.
  std::pair<std::size_t, std::size_t> HeadWidths() const {
    std::size_t in = 0, out = 0;
    for (const Op& op : program.body) {
      const auto* heads = std::get_if<HeadLinearOp>(&op);
      if (heads == nullptr) continue;
      in = std::max<std::size_t>(in, heads->in_dim);
      out = std::max<std::size_t>(out, heads->out_dim);
    }
    return {in, out};
  }
  std::size_t RowsOf(Buffer buffer) const {
    for (Buffer up : {Buffer::kMlpUp, Buffer::kSharedUp, Buffer::kPerLayerUp}) {
      if (buffer == up) return 0;  // never leaves the registers
    }
    if (buffer == Buffer::kLogits) return program.part.world > 1 ? limits.max_logit_rows : 0;
    return limits.max_step_tokens;
  }
  // The width of the widest input of a GEMM.
  std::size_t Inner() const {
    std::size_t widest = 0;
    for (std::size_t i = 0; i < kBufferCount; ++i) {
      if (HoldsActivations(static_cast<Buffer>(i))) {
        widest = std::max<std::size_t>(widest, program.widths[i]);
      }
    }
    return widest;
  }
  std::size_t ElementOf(Buffer buffer) const {
    return HoldsActivations(buffer) ? DTypeBytes(kernels.activation) : sizeof(float);
  }
};

// Divides one region into pieces. Without a region it only counts their bytes.
class StepBuffers::Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  std::byte* Take(std::size_t bytes) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    // Pieces begin on pages of their own, and a line after each is readable.
    used_ += RoundUp(bytes + kCacheLineBytes, kPageBytes);
    return piece;
  }
  float* Floats(std::size_t count) { return reinterpret_cast<float*>(Take(count * sizeof(float))); }
  AttentionState State(std::size_t rows, std::size_t value_stride) {
    float* memory = Floats(rows * (2 + value_stride));
    if (memory == nullptr) return {};
    return {memory, memory + rows, memory + 2 * rows, value_stride};
  }
  IntegerRows Rows(const Sizes& sizes, std::size_t rows, std::size_t inner) {
    if (sizes.format.quantize == nullptr) return {};
    IntegerRows integers;
    integers.stride =
        StrideFor(RoundUp(inner, kStrideUnit) / sizes.format.pack * sizes.format.step_bytes, 1);
    integers.group_stride = RoundUp(inner, sizes.format.group) / sizes.format.group;
    integers.values = Take(rows * integers.stride);
    integers.groups =
        reinterpret_cast<IntegerGroup*>(Take(rows * integers.group_stride * sizeof(IntegerGroup)));
    return integers;
  }
  // The next piece begins on a new huge page.
  void BeginHugePage() { used_ = RoundUp(used_, kHugePage); }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

void StepBuffers::Carve(const Sizes& sizes, Carver& carver) {
  const std::size_t hidden = sizes.program.Width(Buffer::kHidden);
  const std::size_t activation = DTypeBytes(sizes.kernels.activation);
  for (std::size_t i = 0; i < kBufferCount; ++i) {
    const auto buffer = static_cast<Buffer>(i);
    BufferView& view = views_[i];
    view.element = sizes.ElementOf(buffer);
    view.stride = StrideFor(sizes.program.widths[i], view.element);
    view.data = carver.Take(sizes.RowsOf(buffer) * view.stride * view.element);
  }
  const std::size_t rows = std::max(sizes.limits.max_step_tokens, sizes.limits.max_logit_rows);
  integers_ = carver.Rows(sizes, rows, sizes.Inner());
  low_ = carver.Floats(rows * kMostTargetRanks);
  threads_.resize(sizes.threads);
  own_.clear();
  const bool apart = sizes.placement.NodeCount() > 1;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    ThreadScratch& thread = threads_[i];
    const bool first = i == 0 || sizes.placement.NodeOf(i) != sizes.placement.NodeOf(i - 1);
    if (apart && first) carver.BeginHugePage();
    own_.push_back(carver.used());
    thread.gemm = carver.Floats(kGemmScratch);
    thread.row = carver.Floats(hidden);
    thread.normed = views_[static_cast<std::size_t>(Buffer::kNormed)];
    thread.normed.data = carver.Take(kPrivateRows * thread.normed.stride * activation);
    thread.integers = carver.Rows(sizes, kPrivateRows, sizes.Inner());
    thread.added_sums = carver.Floats(rows * kAddedVectors * sizes.kernels.layout.lanes);
    thread.added = reinterpret_cast<const float**>(carver.Take(rows * sizeof(const float*)));
    CarveLatent(sizes, carver, thread);
    const std::size_t query = std::max(kQueryStride, thread.attention.latent_stride);
    thread.attention.queries = carver.Take(tile_rows_ * query * sizeof(float));
    thread.attention.scores = carver.Floats(tile_rows_ * kScoreStride);
    thread.attention.probabilities = carver.Take(tile_rows_ * kScoreStride * sizeof(float));
    thread.partition = carver.State(tile_rows_, value_stride_);
    thread.total = carver.State(tile_rows_, value_stride_);
  }
  if (apart) carver.BeginHugePage();
  own_.push_back(carver.used());
  slot_memory_ = carver.Floats(slots_ * tile_rows_ * (2 + value_stride_));
  const std::size_t logit_rows = sizes.limits.max_logit_rows;
  logits_ = carver.Floats(logit_rows * sizes.program.OutputWidth());
  const std::size_t world = sizes.program.part.world;
  if (world > 1) {
    gathered_ = carver.Floats(world * logit_rows * sizes.program.Width(Buffer::kLogits));
  }
}

// What latent attention needs.
void StepBuffers::CarveLatent(const Sizes& sizes, Carver& carver, ThreadScratch& thread) {
  if (const std::size_t width = sizes.Latent(); width > 0) {
    thread.attention.latent_stride = StrideFor(width, sizeof(float));
    thread.attention.latents = carver.Floats(kLatentPositions * thread.attention.latent_stride);
  }
  const auto [in, out] = sizes.HeadWidths();
  if (in == 0) return;
  HeadScratch& head = thread.head;
  const std::size_t activation = DTypeBytes(sizes.kernels.activation);
  head.in = {nullptr, StrideFor(in, activation), activation};
  head.in.data = carver.Take(kHeadRows * head.in.stride * activation);
  head.out = {nullptr, StrideFor(out, sizeof(float)), sizeof(float)};
  head.out.data = carver.Take(kHeadRows * head.out.stride * sizeof(float));
  head.integers = carver.Rows(sizes, kHeadRows, in);
}

absl::StatusOr<StepBuffers> StepBuffers::Create(const Program& program, const Kernels& kernels,
                                                const FormatKernels& format,
                                                const BackendLimits& limits, WorkerPool& pool) {
  const std::uint32_t threads = pool.threads();
  const Sizes sizes{program, kernels, format, limits, pool.placement(), threads};
  StepBuffers buffers;
  const HeadShape largest = sizes.Largest();
  buffers.tile_rows_ = std::max<std::size_t>(kTileRows, largest.Group());
  buffers.value_stride_ = RoundUp(largest.value_dim, kernels.layout.lanes);
  const std::size_t slot = buffers.tile_rows_ * (2 + buffers.value_stride_);
  buffers.slots_ = threads == 1 ? 0 : std::max<std::size_t>(8, kSlotFloats * threads / slot);
  Carver counter(nullptr);
  buffers.Carve(sizes, counter);
  auto region = MemoryRegion::Allocate(counter.used());
  if (!region.ok()) return WithContext(region.status(), "scratch");
  buffers.region_ = std::move(*region);
  Carver carver(buffers.region_.data());
  buffers.Carve(sizes, carver);
  buffers.Touch(pool);
  return buffers;
}

void StepBuffers::Touch(WorkerPool& pool) {
  const bool apart = pool.placement().NodeCount() > 1;
  const std::span<std::byte> all(region_.data(), region_.bytes());
  pool.Run([&](std::uint32_t thread) {
    if (!apart) {
      const Share share = EvenShare(PrefaultUnits(all.size()), pool.threads(), thread);
      for (std::size_t i = 0; i < share.count; ++i) PrefaultUnit(all, share.first + i);
      return;
    }
    const std::span<std::byte> own(region_.data() + own_[thread], own_[thread + 1] - own_[thread]);
    for (std::size_t unit = 0; unit < PrefaultUnits(own.size()); ++unit) PrefaultUnit(own, unit);
  });
}

AttentionState StepBuffers::Slot(std::size_t slot) const {
  float* memory = slot_memory_ + slot * tile_rows_ * (2 + value_stride_);
  return {memory, memory + tile_rows_, memory + 2 * tile_rows_, value_stride_};
}

}  // namespace penstock::shard::cpu
