// Plain functions that launch the kernels of a mixture of experts (ExpertsOp). Everything stays on
// the device, so that a recorded step can contain it.
//
// Each row chooses some experts. The choices of a step are sorted by expert: the choices of one
// expert take consecutive slots, in the order of their rows. A product then computes all slots of
// an expert with its matrix. The result of a slot does not depend on the other slots.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "common/dtype.h"
#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {

inline constexpr std::uint32_t kMostExperts = 1024;
inline constexpr std::uint32_t kMostChosen = 32;

// Chooses experts as Routing in shard/model/program.h says. Of equal experts the first counts.
struct RoutingArgs {
  const void* scores = nullptr;        // elements [rows, experts]
  const void* choice_bias = nullptr;   // elements [experts], or null
  const void* expert_scale = nullptr;  // elements [experts], or null
  std::int32_t* choices = nullptr;     // [rows, chosen]: experts, ascending in each row
  float* weights = nullptr;            // [rows, chosen]
  std::uint32_t rows = 0;
  std::uint32_t experts = 0;  // at most kMostExperts
  std::uint32_t chosen = 0;   // at most kMostChosen, and no more than there are experts
  std::uint32_t groups = 1;
  std::uint32_t kept_groups = 1;
  std::uint32_t group_best = 1;
  bool sigmoid = false;  // else softmax
  bool renormalized = false;
  float scale = 1.0f;
  float score_scale = 1.0f;
};
absl::Status ChooseExperts(const RoutingArgs& args, DType dtype, Stream stream);

// Gives each choice its slot.
struct SlotArgs {
  const std::int32_t* choices = nullptr;  // [count]
  std::int32_t* slots = nullptr;          // [count]: of each choice
  std::int32_t* choice_of = nullptr;      // [count]: of each slot
  std::int32_t* first = nullptr;          // [experts + 1]: slots of expert e begin at first[e]
  std::uint32_t count = 0;
  std::uint32_t experts = 0;
};
absl::Status SortChoices(const SlotArgs& args, Stream stream);

// out[slot] = in[row of the slot] * its weight.
struct WeighArgs {
  const void* in = nullptr;                 // elements [rows, width]
  const float* weights = nullptr;           // [count]
  const std::int32_t* choice_of = nullptr;  // [count]
  void* out = nullptr;                      // elements [count, width]
  std::uint32_t count = 0;
  std::uint32_t chosen = 0;
  std::uint32_t width = 0;
};
absl::Status WeighInputs(const WeighArgs& args, DType dtype, Stream stream);

// out[slot] = in * weight^T (+ bias) with the matrix of the slot's expert. Slots of experts without
// a matrix stay as they are.
struct ExpertLinearArgs {
  const void* in = nullptr;                 // elements [rows, in_width]; [slots, ...] if sorted
  const void* const* weights = nullptr;     // [experts]: elements [out_width, in_width], or null
  const void* const* biases = nullptr;      // [experts]: elements [out_width], or null; or null
  void* out = nullptr;                      // elements [slots, out_width]
  const std::int32_t* first = nullptr;      // [experts + 1]
  const std::int32_t* choice_of = nullptr;  // [slots]; null: `in` is sorted
  std::uint32_t chosen = 1;
  std::uint32_t experts = 0;
  std::uint32_t slots = 0;
  std::uint32_t in_width = 0;
  std::uint32_t out_width = 0;
  // All products add in one order, whatever the number of slots. Only with IsSkinny widths.
  bool batch_invariant = false;
};
absl::Status ExpertLinear(const ExpertLinearArgs& args, DType dtype, Stream stream);

// out = sum of weight * in[slot] over the choices of each row in their order, or out += that.
// Choices of experts without a matrix are left out.
struct ExpertSumArgs {
  const void* in = nullptr;               // elements [slots, width]
  const std::int32_t* choices = nullptr;  // [rows, chosen]
  const float* weights = nullptr;         // [rows, chosen]; null: ones
  const std::int32_t* slots = nullptr;    // [rows, chosen]
  const void* const* matrices = nullptr;  // [experts]
  void* out = nullptr;                    // elements [rows, width]
  std::uint32_t rows = 0;
  std::uint32_t chosen = 0;
  std::uint32_t width = 0;
  bool accumulate = false;
};
absl::Status SumExperts(const ExpertSumArgs& args, DType dtype, Stream stream);

}  // namespace penstock::shard::cuda
