// Products of the slots of each expert with its matrix. The grid has all experts; blocks of experts
// without slots end at once, so that it does not depend on the choices.
//
// * Few slots: as SkinnyLinear. A block computes kOut columns of an expert. Each warp sums a part
//   of in_width, and the parts are added in the order of the warps. So the order of additions
//   depends on in_width alone.
// * Many slots: a block computes tiles of 64 slots by 64 columns from shared memory.
// * Others, and float32: a warp computes a column of an expert, without tensor cores.
#include "shard/backend/cuda/experts.h"
#include "shard/backend/cuda/kernels/tensor_core.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr int kPiece = 8;  // elements of 16 bytes

// The slots of the block's expert.
struct Slots {
  int begin, end;
  const void* weight;
  const void* bias;
};

__device__ inline Slots SlotsOf(const ExpertLinearArgs& args) {
  const unsigned expert = blockIdx.y;
  const void* const weight = args.weights[expert];
  if (weight == nullptr) return {0, 0, nullptr, nullptr};
  return {args.first[expert], args.first[expert + 1], weight,
          args.biases == nullptr ? nullptr : args.biases[expert]};
}

template <class T>
__device__ const T* InputOf(const ExpertLinearArgs& args, int slot) {
  const std::uint32_t row = args.choice_of == nullptr
                                ? static_cast<std::uint32_t>(slot)
                                : static_cast<std::uint32_t>(args.choice_of[slot]) / args.chosen;
  return static_cast<const T*>(args.in) + std::uint64_t{row} * args.in_width;
}

template <class T>
__device__ float BiasOf(const Slots& slots, std::uint32_t column) {
  return slots.bias == nullptr ? 0.0f : ToFloat(static_cast<const T*>(slots.bias)[column]);
}

template <class T>
__device__ T* OutputOf(const ExpertLinearArgs& args, int slot, std::uint32_t column) {
  return static_cast<T*>(args.out) + static_cast<std::uint64_t>(slot) * args.out_width + column;
}

// ---- without tensor cores ----

constexpr int kPlainWarps = 8;

template <class T>
__global__ void PlainExpertKernel(ExpertLinearArgs args) {
  WaitForEarlierKernels();
  const Slots slots = SlotsOf(args);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::uint32_t column = blockIdx.x * kPlainWarps + threadIdx.x / kWarp;
  if (column >= args.out_width) return;
  const T* const weight =
      static_cast<const T*>(slots.weight) + std::uint64_t{column} * args.in_width;
  for (int slot = slots.begin; slot < slots.end; ++slot) {
    const T* const in = InputOf<T>(args, slot);
    float sum = 0.0f;
    for (std::uint32_t i = lane; i < args.in_width; i += kWarp) {
      sum += ToFloat(in[i]) * ToFloat(weight[i]);
    }
    for (int step = kWarp / 2; step > 0; step /= 2) sum += FromLane(sum, step);
    if (lane == 0) *OutputOf<T>(args, slot, column) = FromFloat<T>(sum + BiasOf<T>(slots, column));
  }
}

// ---- few slots ----

constexpr int kWarps = 8;
constexpr int kFewThreads = kWarps * kWarp;
constexpr int kOut = 16;  // rows of a matrix that a block has: those of a fragment
constexpr int kStep = static_cast<int>(SkinnyStep(WeightForm::kPlain));
constexpr int kTileSlots = 8;  // of a product
constexpr int kMostTiles = 4;

// [warp][row of the matrix][slot]
using Parts = float[kWarps][kOut][kMostTiles * kTileSlots + 1];

// What a warp multiplies: some steps of the input.
struct Place {
  int first, end;
  const Bf16* weights[2];  // of rows lane / 4 and lane / 4 + 8
};

__device__ inline Place PlaceOf(const ExpertLinearArgs& args, const Slots& slots) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int steps = static_cast<int>(args.in_width) / kStep;
  const int of_warp = (steps + kWarps - 1) / kWarps;
  Place place;
  place.first = static_cast<int>(threadIdx.x) / kWarp * of_warp;
  place.end = place.first + of_warp < steps ? place.first + of_warp : steps;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t wanted = blockIdx.x * kOut + half * 8 + lane / 4;
    const std::uint32_t row = wanted < args.out_width ? wanted : args.out_width - 1;
    place.weights[half] = static_cast<const Bf16*>(slots.weight) +
                          std::uint64_t{row} * args.in_width + lane % 4 * kPiece;
  }
  return place;
}

// kTiles tiles of slots from `first` on, kSteps steps at a time.
template <int kSteps, int kTiles>
__device__ void MultiplySlots(const ExpertLinearArgs& args, const Slots& slots, const Place& place,
                              int first, Parts& parts) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const Bf16* in[kTiles];  // null: no such slot
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int slot = first + tile * kTileSlots + lane / 4;
    in[tile] = slot < slots.end ? InputOf<Bf16>(args, slot) + lane % 4 * kPiece : nullptr;
  }
  float sums[kTiles][4] = {};
  for (int step = place.first; step < place.end; step += kSteps) {
    Bytes16 weights[kSteps][2];
    Bytes16 inputs[kSteps][kTiles];
#pragma unroll
    for (int u = 0; u < kSteps; ++u) {
      // After the warp's last step: its last weights once more, which meet zeros of the input.
      const bool there = step + u < place.end;
      const int at = (there ? step + u : place.end - 1) * kStep;
#pragma unroll
      for (int half = 0; half < 2; ++half) weights[u][half] = LoadOnce16(place.weights[half] + at);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        inputs[u][tile] = there && in[tile] != nullptr
                              ? *reinterpret_cast<const Bytes16*>(in[tile] + at)
                              : Bytes16{};
      }
    }
#pragma unroll
    for (int u = 0; u < kSteps; ++u) {
#pragma unroll
      for (int pair = 0; pair < 4; pair += 2) {
        const std::uint32_t a[4] = {weights[u][0].words[pair], weights[u][1].words[pair],
                                    weights[u][0].words[pair + 1], weights[u][1].words[pair + 1]};
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          MultiplyAdd(sums[tile], a, inputs[u][tile].words[pair], inputs[u][tile].words[pair + 1]);
        }
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      parts[warp][lane / 4 + i / 2 * 8][tile * kTileSlots + lane % 4 * 2 + i % 2] = sums[tile][i];
    }
  }
}

__device__ inline void Finish(const ExpertLinearArgs& args, const Slots& slots, int first,
                              int count, const Parts& parts) {
  for (int i = threadIdx.x; i < kOut * count; i += kFewThreads) {
    const int slot = i / kOut;
    const int row = i % kOut;
    const std::uint32_t column = blockIdx.x * kOut + row;
    if (column >= args.out_width) continue;
    float sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sum += parts[warp][row][slot];
    *OutputOf<Bf16>(args, first + slot, column) =
        FromFloat<Bf16>(sum + BiasOf<Bf16>(slots, column));
  }
}

__global__ void __launch_bounds__(kFewThreads, 2) FewSlotsKernel(ExpertLinearArgs args) {
  WaitForEarlierKernels();
  __shared__ Parts parts;
  const Slots slots = SlotsOf(args);
  if (slots.begin >= slots.end) return;
  const Place place = PlaceOf(args, slots);
  for (int first = slots.begin; first < slots.end;) {
    const int left = slots.end - first;
    int count = kTileSlots;
    if (left <= kTileSlots) {
      MultiplySlots<4, 1>(args, slots, place, first, parts);
    } else {
      count = kMostTiles * kTileSlots;
      MultiplySlots<1, kMostTiles>(args, slots, place, first, parts);
    }
    if (left < count) count = left;
    __syncthreads();
    Finish(args, slots, first, count, parts);
    __syncthreads();  // the next sums take the place of these
    first += count;
  }
}

// ---- many slots ----

constexpr int kTile = 64;  // slots and columns
constexpr int kManyThreads = 128;
constexpr int kDepth = 32;                  // of a turn
constexpr int kStride = kDepth + kPiece;    // an odd number of 16 bytes
constexpr int kTurn = 2 * kTile * kStride;  // elements: slots, then rows of the matrix

// Elements [at, at + kDepth) of the tile's slots and of the matrix's rows; zeros where there are
// none.
__device__ inline void LoadTurn(const ExpertLinearArgs& args, const Slots& slots, int first, int at,
                                Bf16* to) {
  constexpr int kPieces = kDepth / kPiece;
  for (int i = threadIdx.x; i < kTile * kPieces; i += kManyThreads) {
    const int row = i / kPieces;
    const int piece = i % kPieces * kPiece;
    const bool is_slot = first + row < slots.end;
    CopyAsync(to + row * kStride + piece,
              InputOf<Bf16>(args, is_slot ? first + row : first) + at + piece, is_slot);
    const std::uint32_t column = blockIdx.x * kTile + row;
    const bool is_column = column < args.out_width;
    CopyAsync(to + (kTile + row) * kStride + piece,
              static_cast<const Bf16*>(slots.weight) +
                  std::uint64_t{is_column ? column : 0} * args.in_width + at + piece,
              is_column);
  }
  EndCopyGroup();
}

// The warp's 32 slots by 32 columns of one turn.
__device__ inline void MultiplyTurn(const Bf16* turn, int warp_slot, int warp_column,
                                    float (&sums)[2][4][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const Bf16* const slots = turn + (warp_slot + lane % 16) * kStride + lane / 16 * kPiece;
  const Bf16* const columns =
      turn + (kTile + warp_column + lane % 8 + lane / 16 * 8) * kStride + lane / 8 % 2 * kPiece;
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    std::uint32_t a[2][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      LoadMatrices(a[i], slots + i * 16 * kStride + k);
      LoadMatrices(b[i], columns + i * 16 * kStride + k);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        MultiplyAdd(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

__device__ inline void StoreTile(const ExpertLinearArgs& args, const Slots& slots, int first,
                                 int warp_slot, int warp_column, const float (&sums)[2][4][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int slot = first + warp_slot + i * 16 + lane / 4 + c / 2 * 8;
        const std::uint32_t column =
            blockIdx.x * kTile + warp_column + j * 8 + lane % 4 * 2 + c % 2;
        if (slot >= slots.end || column >= args.out_width) continue;
        *OutputOf<Bf16>(args, slot, column) =
            FromFloat<Bf16>(sums[i][j][c] + BiasOf<Bf16>(slots, column));
      }
    }
  }
}

__global__ void __launch_bounds__(kManyThreads) ManySlotsKernel(ExpertLinearArgs args) {
  WaitForEarlierKernels();
  PENSTOCK_DYNAMIC_SHARED(memory);
  Bf16* const turns = reinterpret_cast<Bf16*>(memory);
  const Slots slots = SlotsOf(args);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warp_slot = warp / 2 * 32;
  const int warp_column = warp % 2 * 32;
  const int depth = static_cast<int>(args.in_width);
  for (int first = slots.begin; first < slots.end; first += kTile) {
    float sums[2][4][4] = {};
    LoadTurn(args, slots, first, 0, turns);
    for (int at = 0, turn = 0; at < depth; at += kDepth, turn = 1 - turn) {
      WaitForCopies<0>();
      __syncthreads();  // this tile has arrived, and the other one has been read
      if (at + kDepth < depth) {
        LoadTurn(args, slots, first, at + kDepth, turns + (1 - turn) * kTurn);
      }
      MultiplyTurn(turns + turn * kTurn, warp_slot, warp_column, sums);
    }
    StoreTile(args, slots, first, warp_slot, warp_column, sums);
    __syncthreads();  // the next tile's first turn takes the place of the last one's
  }
}

// From so many slots per expert on, on average, tiles are used.
constexpr std::uint32_t kManySlots = 16;

}  // namespace

absl::Status ExpertLinear(const ExpertLinearArgs& args, DType dtype, Stream stream) {
  if (args.slots == 0) return absl::OkStatus();
  const bool fragments =
      dtype == DType::kBFloat16 && args.in_width % SkinnyStep(WeightForm::kPlain) == 0;
  if (!fragments) {
    const dim3 grid(CeilDivide(args.out_width, kPlainWarps), args.experts);
    return ForElement(dtype, [&](auto element) {
      PENSTOCK_LAUNCH(PlainExpertKernel<decltype(element)>, grid, kPlainWarps * kWarp, 0, stream,
                      args);
    });
  }
  if (!args.batch_invariant && args.slots >= kManySlots * args.experts) {
    PENSTOCK_LAUNCH(ManySlotsKernel, dim3(CeilDivide(args.out_width, kTile), args.experts),
                    kManyThreads, 2 * kTurn * sizeof(Bf16), stream, args);
  } else {
    PENSTOCK_LAUNCH(FewSlotsKernel, dim3(CeilDivide(args.out_width, kOut), args.experts),
                    kFewThreads, 0, stream, args);
  }
  return LaunchStatus();
}

}  // namespace penstock::shard::cuda
