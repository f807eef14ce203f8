// The kernels of a mixture of experts: choices against the cpu backend's, products and sums against
// plain loops in double precision.
#include "shard/backend/cuda/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "shard/backend/cpu/experts/routing.h"
#include "tests/unit/shard/backend/cuda/device_values.h"

namespace penstock::shard::cuda {
namespace {

bool Ran(const absl::Status& launched) {
  const absl::Status status = launched.ok() ? FinishKernels() : launched;
  EXPECT_TRUE(status.ok()) << status;
  return status.ok();
}

class ExpertsTest : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override { PENSTOCK_DEVICE_OR_SKIP(); }

  Values Random(std::size_t count, float scale = 1.0f) {
    return Values::Random(count, GetParam(), scale, generator_);
  }

  static std::vector<float> Floats(const Values& values) {
    std::vector<float> floats;
    for (std::size_t i = 0; i < values.size(); ++i) floats.push_back(static_cast<float>(values[i]));
    return floats;
  }

  // The choices of `rows` rows of scores are those of the cpu backend.
  void ExpectChoices(const Routing& routing, const Values& scores, std::uint32_t rows) {
    const Values bias = Random(routing.experts), scale = Random(routing.experts);
    const bool biased = routing.choice_bias != kNoWeight;
    const bool scaled = routing.expert_scale != kNoWeight;
    SharedVector<std::int32_t> choices(rows * routing.chosen);
    SharedVector<float> weights(rows * routing.chosen);
    RoutingArgs args;
    args.scores = scores.data();
    args.choice_bias = biased ? bias.data() : nullptr;
    args.expert_scale = scaled ? scale.data() : nullptr;
    args.choices = choices.data();
    args.weights = weights.data();
    args.rows = rows;
    args.experts = routing.experts;
    args.chosen = routing.chosen;
    args.groups = routing.groups;
    args.kept_groups = routing.kept_groups;
    args.group_best = routing.group_best;
    args.sigmoid = routing.kind == Routing::Kind::kSigmoid;
    args.renormalized = routing.renormalized;
    args.scale = routing.scale;
    args.score_scale = routing.score_scale;
    ASSERT_TRUE(Ran(ChooseExperts(args, GetParam(), nullptr)));
    const std::vector<float> of_cpu = Floats(scores), biases = Floats(bias), scales = Floats(scale);
    const cpu::Router router(routing, biased ? biases.data() : nullptr,
                             scaled ? scales.data() : nullptr);
    cpu::Router::Scratch scratch;
    std::vector<cpu::Choice> want(routing.chosen);
    for (std::uint32_t row = 0; row < rows; ++row) {
      router.Choose(of_cpu.data() + row * routing.experts, scratch, want);
      for (std::uint32_t i = 0; i < routing.chosen; ++i) {
        const std::uint32_t at = row * routing.chosen + i;
        ASSERT_EQ(choices[at], static_cast<std::int32_t>(want[i].expert)) << "row " << row;
        ASSERT_NEAR(weights[at], want[i].weight, 1e-5 * (1 + std::abs(want[i].weight)));
      }
    }
  }

  std::mt19937 generator_{20261127};
};

TEST_P(ExpertsTest, ChoicesAreThoseOfTheCpuBackend) {
  using Kind = Routing::Kind;
  const Routing routings[] = {
      {.kind = Kind::kSoftmax, .experts = 8, .chosen = 2, .renormalized = true},
      {.kind = Kind::kSoftmax, .experts = 5, .chosen = 5, .score_scale = 0.3f},
      {.kind = Kind::kSoftmax, .experts = 128, .chosen = 8, .expert_scale = 0},
      {.kind = Kind::kSigmoid, .experts = 16, .chosen = 1},
      {.kind = Kind::kSigmoid, .experts = 1000, .chosen = 32, .choice_bias = 0},
      {.kind = Kind::kSigmoid,
       .experts = 64,
       .chosen = 6,
       .choice_bias = 0,
       .groups = 8,
       .kept_groups = 3,
       .group_best = 2,
       .renormalized = true,
       .scale = 2.5f}};
  for (const Routing& routing : routings) {
    SCOPED_TRACE(routing.experts);
    ExpectChoices(routing, Random(7 * routing.experts, 3.0f), 7);
  }
}

TEST_P(ExpertsTest, OfEqualExpertsTheFirstCounts) {
  const Routing routing{.experts = 40, .chosen = 4};
  Values scores = Values::Zeros(40, GetParam());
  ExpectChoices(routing, scores, 1);
  for (const std::uint32_t expert : {3u, 33u, 34u, 39u, 39u}) scores.Set(expert, 1.0f);
  ExpectChoices(routing, scores, 1);
}

TEST_P(ExpertsTest, ARowOfNaNChoosesExpertsThatAreThere) {
  for (const std::uint32_t groups : {1u, 4u}) {
    Values scores = Random(40);
    for (std::uint32_t i = 0; i < 40; ++i) scores.Set(i, std::nanf(""));
    SharedVector<std::int32_t> choices(6);
    SharedVector<float> weights(6);
    RoutingArgs args{.scores = scores.data(), .choices = choices.data(), .weights = weights.data()};
    args.rows = 1;
    args.experts = 40;
    args.chosen = 6;
    args.groups = groups;
    args.group_best = 2;
    ASSERT_TRUE(Ran(ChooseExperts(args, GetParam(), nullptr)));
    EXPECT_EQ(std::set<std::int32_t>(choices.begin(), choices.end()).size(), 6u);
    EXPECT_TRUE(std::is_sorted(choices.begin(), choices.end()));
    EXPECT_GE(choices.front(), 0);
    EXPECT_LT(choices.back(), 40);
  }
}

struct Sorted {
  SharedVector<std::int32_t> slots, choice_of, first;
};

Sorted Sort(const SharedVector<std::int32_t>& choices, std::uint32_t experts) {
  const auto count = static_cast<std::uint32_t>(choices.size());
  Sorted sorted{SharedVector<std::int32_t>(count), SharedVector<std::int32_t>(count),
                SharedVector<std::int32_t>(experts + 1)};
  EXPECT_TRUE(Ran(SortChoices({choices.data(), sorted.slots.data(), sorted.choice_of.data(),
                               sorted.first.data(), count, experts},
                              nullptr)));
  return sorted;
}

TEST(ExpertSlotsTest, SlotsAreSortedByExpertAndRow) {
  PENSTOCK_DEVICE_OR_SKIP();
  std::mt19937 generator(3);
  for (const std::uint32_t count : {1u, 6u, 128u, 517u}) {
    SharedVector<std::int32_t> choices;
    for (std::uint32_t i = 0; i < count; ++i) {
      choices.push_back(static_cast<std::int32_t>(generator() % 11));
    }
    const Sorted sorted = Sort(choices, 12);  // nobody chooses the last one
    std::vector<std::int32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i) order[i] = static_cast<std::int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return choices[static_cast<std::size_t>(a)] < choices[static_cast<std::size_t>(b)];
    });
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      ASSERT_EQ(sorted.choice_of[slot], order[slot]);
      ASSERT_EQ(sorted.slots[static_cast<std::size_t>(order[slot])],
                static_cast<std::int32_t>(slot));
    }
    for (std::int32_t expert = 0; expert <= 12; ++expert) {
      const auto lower = std::count_if(choices.begin(), choices.end(),
                                       [expert](std::int32_t choice) { return choice < expert; });
      ASSERT_EQ(sorted.first[static_cast<std::size_t>(expert)], lower);
    }
  }
}

// Products of one step. Expert 1 has no slots, expert 2 no matrix.
class Products {
 public:
  Products(DType dtype, const std::vector<std::uint32_t>& slots_of, std::uint32_t in_width,
           std::uint32_t out_width, std::mt19937& generator)
      : dtype_(dtype), in_width_(in_width), out_width_(out_width) {
    for (std::uint32_t expert = 0; expert < slots_of.size(); ++expert) {
      for (std::uint32_t i = 0; i < slots_of[expert]; ++i) {
        choices_.push_back(static_cast<std::int32_t>(expert));
      }
      weights_.push_back(Values::Random(out_width * in_width, dtype, 0.2f, generator));
      biases_.push_back(Values::Random(out_width, dtype, 1.0f, generator));
    }
    std::shuffle(choices_.begin(), choices_.end(), generator);
    in_ = Values::Random(choices_.size() * in_width, dtype, 1.0f, generator);
    for (std::uint32_t expert = 0; expert < slots_of.size(); ++expert) {
      matrices_.push_back(expert == 2 ? nullptr : weights_[expert].data());
      vectors_.push_back(biases_[expert].data());
    }
    sorted_ = Sort(choices_, static_cast<std::uint32_t>(slots_of.size()));
  }

  // Each row chose one expert.
  Values Run(bool sorted, bool bias, bool batch_invariant = false) {
    Values out = Values::Zeros(choices_.size() * out_width_, dtype_);
    ExpertLinearArgs args;
    args.in = in_.data();
    args.weights = matrices_.data();
    args.biases = bias ? vectors_.data() : nullptr;
    args.out = out.data();
    args.first = sorted_.first.data();
    args.choice_of = sorted ? nullptr : sorted_.choice_of.data();
    args.experts = static_cast<std::uint32_t>(matrices_.size());
    args.slots = static_cast<std::uint32_t>(choices_.size());
    args.in_width = in_width_;
    args.out_width = out_width_;
    args.batch_invariant = batch_invariant;
    EXPECT_TRUE(Ran(ExpertLinear(args, dtype_, nullptr)));
    return out;
  }

  void ExpectProducts(bool sorted, bool bias) {
    const Values out = Run(sorted, bias);
    const double relative = dtype_ == DType::kFloat32 ? 1e-5 : 2e-2;
    for (std::uint32_t slot = 0; slot < choices_.size(); ++slot) {
      const auto choice = static_cast<std::uint32_t>(sorted_.choice_of[slot]);
      const auto expert = static_cast<std::uint32_t>(choices_[choice]);
      const std::size_t in = std::size_t{sorted ? slot : choice} * in_width_;
      for (std::uint32_t column = 0; column < out_width_; ++column) {
        double want = bias ? biases_[expert][column] : 0.0;
        for (std::uint32_t i = 0; i < in_width_; ++i) {
          want += in_[in + i] * weights_[expert][column * in_width_ + i];
        }
        if (matrices_[expert] == nullptr) want = 0.0;  // as it was
        ASSERT_NEAR(out[slot * out_width_ + column], want, relative * (1 + std::abs(want)))
            << "slot " << slot << " of expert " << expert << ", column " << column;
      }
    }
  }

  Values& in() { return in_; }

 private:
  DType dtype_;
  std::uint32_t in_width_, out_width_;
  SharedVector<std::int32_t> choices_;
  std::vector<Values> weights_, biases_;
  SharedVector<const void*> matrices_, vectors_;
  Values in_ = Values::Zeros(0, DType::kFloat32);
  Sorted sorted_;
};

TEST_P(ExpertsTest, EachSlotIsMultipliedByItsExpert) {
  const std::vector<std::uint32_t> few = {3, 0, 4, 1, 8, 9, 40}, many = {64, 0, 5, 130, 1};
  for (const auto& slots_of : {few, many}) {
    for (const auto& [in_width, out_width] :
         {std::pair{32u, 16u}, std::pair{352u, 70u}, std::pair{40u, 33u}}) {
      SCOPED_TRACE(std::to_string(slots_of[0]) + " slots, " + std::to_string(in_width) +
                   " columns");
      Products products(GetParam(), slots_of, in_width, out_width, generator_);
      products.ExpectProducts(true, false);
      products.ExpectProducts(false, true);
    }
  }
}

TEST(ExpertBitsTest, ABatchInvariantSlotHasTheSameBitsAmongAnyOthers) {
  PENSTOCK_DEVICE_OR_SKIP();
  // The same generator makes the same matrices, since they are made first.
  std::mt19937 first(5), second(5);
  Products alone(DType::kBFloat16, {1, 0, 0, 0}, 352, 48, first);
  Products among(DType::kBFloat16, {90, 0, 0, 0}, 352, 48, second);
  for (std::size_t i = 0; i < 352; ++i) {
    among.in().Set(17 * 352 + i, static_cast<float>(alone.in()[i]));
  }
  const Values want = alone.Run(true, true, true), got = among.Run(true, true, true);
  for (std::size_t i = 0; i < 48; ++i) ASSERT_EQ(want[i], got[17 * 48 + i]) << "column " << i;
}

TEST_P(ExpertsTest, SumsAddWeighedSlotsOfExpertsThatAreHere) {
  const std::uint32_t rows = 3, chosen = 2, width = 40;
  const SharedVector<std::int32_t> choices = {0, 2, 1, 2, 0, 1};
  const SharedVector<float> weights = {0.5f, 2.0f, 1.5f, -1.0f, 0.25f, 1.0f};
  const Values in = Random(6 * width);
  const float matrix = 0.0f;
  const SharedVector<const void*> matrices = {&matrix, nullptr, &matrix};
  const Sorted sorted = Sort(choices, 3);
  for (const bool accumulate : {false, true}) {
    Values out = Random(rows * width);
    std::vector<double> want;
    for (std::uint32_t i = 0; i < rows * width; ++i) {
      double sum = accumulate ? out[i] : 0.0;
      for (std::uint32_t c = i / width * chosen; c < (i / width + 1) * chosen; ++c) {
        if (choices[c] == 1) continue;
        sum += weights[c] * in[static_cast<std::size_t>(sorted.slots[c]) * width + i % width];
      }
      want.push_back(sum);
    }
    ExpertSumArgs args{in.data(),           choices.data(),  weights.data(),
                       sorted.slots.data(), matrices.data(), out.data()};
    args.rows = rows;
    args.chosen = chosen;
    args.width = width;
    args.accumulate = accumulate;
    ASSERT_TRUE(Ran(SumExperts(args, GetParam(), nullptr)));
    for (std::uint32_t i = 0; i < rows * width; ++i) {
      ASSERT_NEAR(out[i], want[i], 2e-2 * (1 + std::abs(want[i])));
    }
  }
}

TEST_P(ExpertsTest, InputsAreWeighedBySlot) {
  const std::uint32_t width = 24;
  const SharedVector<std::int32_t> choices = {1, 0, 1, 2};  // of two rows
  const SharedVector<float> weights = {0.5f, 2.0f, 1.5f, -1.0f};
  const Values in = Random(2 * width);
  Values out = Random(4 * width);
  const Sorted sorted = Sort(choices, 3);
  ASSERT_TRUE(
      Ran(WeighInputs({in.data(), weights.data(), sorted.choice_of.data(), out.data(), 4, 2, width},
                      GetParam(), nullptr)));
  for (std::uint32_t i = 0; i < 4 * width; ++i) {
    const auto choice = static_cast<std::uint32_t>(sorted.choice_of[i / width]);
    const double want = in[choice / 2 * width + i % width] * weights[choice];
    ASSERT_NEAR(out[i], want, 1e-2 * (1 + std::abs(want)));
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, ExpertsTest, testing::Values(DType::kFloat32, DType::kBFloat16),
                         [](const auto& param) { return std::string(DTypeName(param.param)); });

}  // namespace
}  // namespace penstock::shard::cuda
