#include "shard/backend/cuda/fusion.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::shard::cuda {
namespace {

const NormOp kNorm{.in = Buffer::kHidden, .out = Buffer::kNormed, .weight = 0};
const LinearOp kGateUp{.in = Buffer::kNormed, .out = Buffer::kMlpUp, .weight = 1, .gated = true};
const GatedActivationOp kGate{.in = Buffer::kMlpUp, .out = Buffer::kMlp, .width = 64};
const LinearOp kDown{.in = Buffer::kMlp, .out = Buffer::kHidden, .weight = 2, .accumulate = true};

TEST(FusionTest, AProductAndItsGateBecomeOne) {
  const std::vector<Op> ops = {kNorm, kGateUp, kGate, kDown, kNorm};
  EXPECT_EQ(GateToFuse(ops), nullptr) << "a norm";
  EXPECT_EQ(GateToFuse(std::span(ops).subspan(1)), std::get_if<GatedActivationOp>(&ops[2]));
  EXPECT_EQ(GateToFuse(std::span(ops).subspan(3)), nullptr) << "a product alone";
  EXPECT_EQ(GateToFuse(std::span(ops).subspan(4)), nullptr) << "the last op";
}

TEST(FusionTest, WhatALaterOpReadsIsWritten) {
  const GatedActivationOp again{.in = Buffer::kMlpUp, .out = Buffer::kQkv, .width = 64};
  EXPECT_EQ(GateToFuse(std::vector<Op>{kGateUp, kGate, kDown, again}), nullptr);
  const std::vector<Op> written_again = {kGateUp, kGate, kDown, kGateUp, again};
  EXPECT_NE(GateToFuse(written_again), nullptr) << "the second product's output is read";
}

TEST(FusionTest, AnOutputIsNotTheInput) {
  GatedActivationOp back = kGate;
  back.out = Buffer::kNormed;
  EXPECT_EQ(GateToFuse(std::vector<Op>{kGateUp, back, kDown}), nullptr);
}

TEST(FusionTest, OtherActivationsHaveTheirOwnKernel) {
  GatedActivationOp other = kGate;
  other.activation = Activation::kGelu;
  EXPECT_EQ(GateToFuse(std::vector<Op>{kGateUp, other, kDown}), nullptr);
}

}  // namespace
}  // namespace penstock::shard::cuda
