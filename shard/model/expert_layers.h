// Mixtures of experts, for the files of shard/model/architectures. Each function reads the last
// norm. Its result begins the branch of the DecoderBuilder or is added to it.
#pragma once

#include <string>

#include "shard/model/decoder_builder.h"
#include "shard/model/expert_weights.h"

namespace penstock::shard {

// `routing` with a choice bias that is stored as [1, experts].
Routing WithChoiceRow(DecoderBuilder& b, Routing routing, const std::string& tensor);

// The sum of the chosen experts, after DecoderBuilder::Router. The matrices of expert N are `gate`,
// `up` and `down` of "`experts`.N."; or the file has all of them in the stacks
// "`experts`.gate_up_proj" (gate rows first) and "`experts`.down_proj". `choice_bias` and
// `expert_scale` name the tensors of the same members of Routing; "" = there is none.
void AddExperts(DecoderBuilder& b, const std::string& experts, const std::string& gate,
                const std::string& up, const std::string& down, const Routing& routing,
                const std::string& choice_bias = "", Activation activation = Activation::kSilu,
                const std::string& expert_scale = "");

// The same with experts in stacks whose names are relative to the layer. `weigh_inputs` as in
// ExpertsOp.
void AddStackedExperts(DecoderBuilder& b, const ExpertStacks& stacks, const Routing& routing,
                       bool weigh_inputs = false, Activation activation = Activation::kSilu);

// The same with experts whose matrices follow each other in one matrix. Names are relative to the
// layer.
void AddRowStackedExperts(DecoderBuilder& b, const ExpertRows& names, const Routing& routing,
                          Activation activation);

// The same with the bounded gate, and gate and up rows that alternate.
void AddInterleavedExperts(DecoderBuilder& b, const std::string& experts, const Routing& routing,
                           const BoundedGate& gate);

// A gated MLP of spec.shared_intermediate beside the experts. With a `row_gate` its result is
// multiplied by sigmoid(row_gate(x)).
void AddSharedExpert(DecoderBuilder& b, const std::string& gate, const std::string& up,
                     const std::string& down, const std::string& row_gate = "");
// The same with gate and up in one matrix, the gate first.
void AddFusedSharedExpert(DecoderBuilder& b, const std::string& gate_up, const std::string& down);

}  // namespace penstock::shard
