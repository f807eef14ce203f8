#include "shard/model/per_layer_inputs.h"

#include <cmath>

namespace penstock::shard {

class PerLayerInputsBuilder {
 public:
  explicit PerLayerInputsBuilder(DecoderBuilder& b) : b_(b) {}

  void Inputs(const std::string& table, const std::string& projection, const std::string& norm,
              std::uint32_t size) {
    const std::uint32_t columns = b_.spec_.layers * size;
    b_.Widen(Buffer::kPerLayer, columns);
    b_.Widen(Buffer::kPerLayerProjected, columns);
    b_.Add(EmbedOp{.out = Buffer::kPerLayer,
                   .table = b_.VocabularyMatrix(table, b_.Name(table + ".weight"), columns),
                   .scale = std::sqrt(static_cast<float>(size))});
    b_.AllReduce(Buffer::kPerLayer);
    b_.NoNorm();
    b_.Add(b_.RowLinear(projection, Buffer::kPerLayerProjected,
                        {{projection, columns, {0, columns}}}));
    // The norm cancels the factor 1 / sqrt(hidden) of what it reads, but for epsilon.
    b_.Add(GroupNormOp{.in = Buffer::kPerLayerProjected,
                       .out = Buffer::kPerLayer,
                       .weight = b_.Vector(b_.Name(norm + ".weight"), size),
                       .size = size,
                       .eps = b_.spec_.norm_eps * static_cast<float>(b_.spec_.hidden),
                       .scale = std::sqrt(0.5f)});
  }

  void Branch(const std::string& gate, Activation activation, const std::string& projection,
              std::uint32_t size) {
    b_.Widen(Buffer::kPerLayerUp, size);
    b_.Widen(Buffer::kPerLayerGate, size);
    b_.NoNorm();
    b_.Add(b_.RowLinear(gate, Buffer::kPerLayerUp, {{gate, size, {0, size}}}));
    b_.Add(ActivationOp{.in = Buffer::kPerLayerUp,
                        .out = Buffer::kPerLayerGate,
                        .activation = activation,
                        .width = size});
    b_.Add(MultiplyOp{.buffer = Buffer::kPerLayerGate,
                      .by = Buffer::kPerLayer,
                      .first = b_.layer_ * size,
                      .width = size});
    // Every rank has all columns, so there is nothing to sum.
    b_.ColumnLinear(projection, Buffer::kPerLayerGate, size, {0, size});
    b_.reduced_ = true;
  }

 private:
  DecoderBuilder& b_;
};

void AddPerLayerInputs(DecoderBuilder& b, const std::string& table, const std::string& projection,
                       const std::string& norm, std::uint32_t size) {
  PerLayerInputsBuilder(b).Inputs(table, projection, norm, size);
}

void AddPerLayerBranch(DecoderBuilder& b, const std::string& gate, Activation activation,
                       const std::string& projection, std::uint32_t size) {
  PerLayerInputsBuilder(b).Branch(gate, activation, projection, size);
}

}  // namespace penstock::shard
