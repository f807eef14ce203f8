// Gated short convolutions (LFM2), for the files of shard/model/architectures.
#pragma once

#include <cstdint>
#include <string>

#include "shard/model/decoder_builder.h"

namespace penstock::shard {

// Appends the convolution of a layer, with the tensors "`name`.in_proj", "`name`.conv" and
// "`name`.out_proj". Each position sums `taps` inputs. It reads the last norm. Its output product
// begins the branch. The world size must divide the hidden size.
void AddShortConv(DecoderBuilder& b, const std::string& name, std::uint32_t taps);

}  // namespace penstock::shard
