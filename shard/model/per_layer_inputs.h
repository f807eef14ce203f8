// Inputs of the tokens to each layer, beside the residual stream, for the files of
// shard/model/architectures.
#pragma once

#include <cstdint>
#include <string>

#include "shard/model/decoder_builder.h"

namespace penstock::shard {

// Inputs of `size` numbers to each layer: rows of `table` * sqrt(size), plus the norm of each
// `size` numbers of `projection`(residual stream) / sqrt(hidden), all divided by sqrt(2). Call
// after DecoderBuilder::Embedding.
void AddPerLayerInputs(DecoderBuilder& b, const std::string& table, const std::string& projection,
                       const std::string& norm, std::uint32_t size);

// The branch is `projection`(activation(`gate`(residual stream)) * the layer's inputs).
void AddPerLayerBranch(DecoderBuilder& b, const std::string& gate, Activation activation,
                       const std::string& projection, std::uint32_t size);

}  // namespace penstock::shard
