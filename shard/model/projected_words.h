// Embeddings and a head that are narrower than the residual stream, with a projection between
// (OPT-350m). In place of Embedding and before Head.
#pragma once

#include <cstdint>
#include <string>

#include "shard/model/decoder_builder.h"

namespace penstock::shard {

// The residual stream is the embedding of the tokens times the matrix `projection`. `table` and
// `head` as in DecoderBuilder::Embedding; both have `width` columns, at most spec().hidden.
void AddProjectedWords(DecoderBuilder& b, const std::string& table, const std::string& head,
                       const std::string& projection, std::uint32_t width);

// The head reads the last norm times the matrix `projection`.
void AddOutputProjection(DecoderBuilder& b, const std::string& projection);

}  // namespace penstock::shard
