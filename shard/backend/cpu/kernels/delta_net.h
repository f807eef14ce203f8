// Gated delta nets and gates. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

inline Vec Sigmoid(Vec x) { return Divide(Fill(1.0f), Add(Fill(1.0f), Exp(Subtract(Zero(), x)))); }

// One chain per channel, from the oldest input to the newest.
inline void Convolve(const ConvolutionArgs& args) {
  for (std::size_t i = 0; i < args.size; i += kLanes) {
    const std::size_t count = args.size - i;
    Vec sum = Zero();
    for (std::size_t tap = 0; tap < args.taps; ++tap) {
      const Vec weight = LoadFirst(args.weights + tap * args.weight_stride + i, count);
      sum = MultiplyAdd(weight, LoadFirst(args.inputs[tap] + i, count), sum);
    }
    StoreFirst(args.out + i, Silu(sum), count);
  }
}

inline void ScaleToLength(float* x, std::size_t size, float length) {
  constexpr float kEps = 1e-6f;  // of the models, inside the root
  const Vec scale = Fill(length / __builtin_sqrtf(SumOfSquares(x, size) + kEps));
  for (std::size_t i = 0; i < size; i += kLanes) {
    StoreFirst(x + i, Multiply(LoadFirst(x + i, size - i), scale), size - i);
  }
}

// Vectors of a block of columns, and chains of each sum over rows: eight sums in all hide the time
// that an addition takes.
constexpr std::size_t kDeltaVectors = kDeltaColumns / kLanes;
constexpr std::size_t kDeltaChains = 8 / kDeltaVectors;

struct DeltaSums {
  Vec sums[kDeltaChains][kDeltaVectors];
  DeltaSums() {
    for (auto& chain : sums) {
      for (Vec& sum : chain) sum = Zero();
    }
  }
  Vec Of(std::size_t vector) const {
    Vec total = sums[0][vector];
    for (std::size_t chain = 1; chain < kDeltaChains; ++chain) {
      total = Add(total, sums[chain][vector]);
    }
    return total;
  }
};

// What the state gives for `key`, before it decays.
[[gnu::always_inline]] inline DeltaSums Recall(const DeltaArgs& args, const float* key) {
  DeltaSums held;
  const float* state = args.state;
  std::size_t i = 0;
  for (; i + kDeltaChains <= args.key_dim; i += kDeltaChains) {
#pragma GCC unroll 8
    for (std::size_t chain = 0; chain < kDeltaChains; ++chain) {
      const Vec factor = Fill(key[i + chain]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kDeltaVectors; ++v) {
        Vec& sum = held.sums[chain][v];
        sum = MultiplyAdd(factor, Load(state + chain * kDeltaColumns + v * kLanes), sum);
      }
    }
    state += kDeltaChains * kDeltaColumns;
  }
  for (; i < args.key_dim; ++i, state += kDeltaColumns) {
    for (std::size_t v = 0; v < kDeltaVectors; ++v) {
      Vec& sum = held.sums[0][v];
      sum = MultiplyAdd(Fill(key[i]), Load(state + v * kLanes), sum);
    }
  }
  return held;
}

// One row of the state: decays it, adds key * change, and adds query times the row to `sums`.
[[gnu::always_inline]] inline void UpdateRow(float* state, Vec decay, float key, float query,
                                             const Vec (&change)[kDeltaVectors],
                                             Vec (&sums)[kDeltaVectors]) {
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kDeltaVectors; ++v) {
    const Vec old = Multiply(decay, Load(state + v * kLanes));
    const Vec now = MultiplyAdd(Fill(key), change[v], old);
    Store(state + v * kLanes, now);
    sums[v] = MultiplyAdd(Fill(query), now, sums[v]);
  }
}

// The result depends on the state and the rows in their order, not on how many rows a call has.
inline void DeltaRule(const DeltaArgs& args) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    const float* const query = args.query + row * args.stride;
    const float* const key = args.key + row * args.stride;
    float* const value = args.value + row * args.stride;
    const Vec decay = Fill(args.decay[row * args.gate_stride]);
    const Vec beta = Fill(args.beta[row * args.gate_stride]);
    const DeltaSums held = Recall(args, key);
    Vec change[kDeltaVectors];
    for (std::size_t v = 0; v < kDeltaVectors; ++v) {
      const std::size_t at = v * kLanes;
      const Vec wanted = at < args.columns ? LoadFirst(value + at, args.columns - at) : Zero();
      change[v] = Multiply(beta, Subtract(wanted, Multiply(decay, held.Of(v))));
    }
    DeltaSums out;
    float* state = args.state;
    std::size_t i = 0;
    for (; i + kDeltaChains <= args.key_dim; i += kDeltaChains) {
#pragma GCC unroll 8
      for (std::size_t chain = 0; chain < kDeltaChains; ++chain) {
        UpdateRow(state + chain * kDeltaColumns, decay, key[i + chain], query[i + chain], change,
                  out.sums[chain]);
      }
      state += kDeltaChains * kDeltaColumns;
    }
    for (; i < args.key_dim; ++i, state += kDeltaColumns) {
      UpdateRow(state, decay, key[i], query[i], change, out.sums[0]);
    }
    for (std::size_t v = 0; v < kDeltaVectors; ++v) {
      const std::size_t at = v * kLanes;
      if (at < args.columns) StoreFirst(value + at, out.Of(v), args.columns - at);
    }
  }
}

template <class Out>
void GatedNorm(const GatedNormArgs& args) {
  const float mean = SumOfSquares(args.input, args.size) / static_cast<float>(args.size);
  const Vec scale = Fill(1.0f / __builtin_sqrtf(mean + args.eps));
  Out* out = static_cast<Out*>(args.out);
  for (std::size_t i = 0; i < args.size; i += kLanes) {
    const std::size_t count = args.size - i;
    const Vec x = Multiply(LoadFirst(args.input + i, count), scale);
    const Vec normed = Multiply(x, LoadFirst(args.weight + i, count));
    StoreActivations(out + i, Multiply(normed, Silu(LoadFirst(args.gate + i, count))), count);
  }
}

// Whole vectors of the row are read, and as many elements written as before.
template <class Activation>
void GateActivations(void* row, const float* gate, std::size_t size) {
  auto* x = static_cast<Activation*>(row);
  for (std::size_t i = 0; i < size; i += kLanes) {
    const Vec factor = Sigmoid(LoadFirst(gate + i, size - i));
    StoreActivations(x + i, Multiply(LoadActivations(x + i), factor), size - i);
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
