// Gated delta nets, for the files of shard/model/architectures.
#pragma once

#include <string>
#include <vector>

#include "shard/model/decoder_builder.h"

namespace penstock::shard {

// A gated delta net (DeltaNetOp) with the sizes of spec().delta, up to its output product.
// `projections` are the rows of DeltaNetOp::in. The other tensors are conv1d, A_log, dt_bias, norm
// and out_proj of "`name`.".
void AddDeltaNet(DecoderBuilder& b, const std::string& name,
                 const std::vector<RowSlice>& projections);

}  // namespace penstock::shard
