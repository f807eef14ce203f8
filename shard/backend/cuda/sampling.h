// Samples the next token of each row on the device, with the rules, the order and the Philox
// numbers of shard/sampling. So a sequence gets the same tokens on the device and on the host. Rows
// with typical-p, grammars, watermarks, alternatives, or log-probabilities of the row before
// processors changed it are sampled on the host.
//
// Several thread blocks read a row, each 4,096 tokens of it, in any batch; then one block samples.
// Filters find their threshold without a sort, by bisection over the bits of a float. Its 32 passes
// read up to 2,048 of the largest logits, which the block keeps in shared memory, or the row if
// those do not decide. Sums have another order than on the host, so a token whose mass ends within
// a rounding of top-p may be kept here and dropped there.
//
// Threading and errors: as kernels.h.
#pragma once

#include <cstdint>

#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {

struct SeenToken {
  std::int32_t token = 0;
  std::uint32_t generated = 0;  // times; 0: in the prompt alone
};

// Which log-probability of the sampled token is reported.
enum class TokenLogprob : std::uint32_t {
  kNone,
  kOfRow,        // over the row, biases, penalties and masks applied
  kOfSurvivors,  // over what temperature and filters leave of it
};

struct TokenBias {
  std::int32_t token = 0;
  float bias = 0;
};

// SamplingParams of one row, and where its entries are in the lists that all rows share. In each
// list a row names a token at most once.
struct SampleRow {
  std::uint64_t seed = 0;
  std::uint32_t sibling = 0;
  std::uint32_t position = 0;  // in the request's output
  std::uint32_t do_sample = 0;
  float temperature = 1.0f;
  std::uint32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  std::uint32_t first_seen = 0, seen_count = 0;  // 0 without penalties
  std::uint32_t first_bias = 0, bias_count = 0;
  std::uint32_t first_masked = 0, masked_count = 0;
  TokenLogprob logprob = TokenLogprob::kNone;
  // The index, in the tokens of the step before, of one that penalties must count; -1: none.
  std::int32_t newest = -1;
  std::uint32_t penalties = 0;  // whether there are any
};

struct SampleArgs {
  float* logits = nullptr;          // [rows, width], changed by biases, penalties and masks
  const SampleRow* rows = nullptr;  // [row_count]
  const SeenToken* seen = nullptr;
  const TokenBias* biases = nullptr;
  const std::int32_t* masked = nullptr;
  // [row_count]; -1: NaN, or no token is allowed. The kernel first reads the tokens of the step
  // before from here.
  std::int32_t* out = nullptr;
  float* logprobs = nullptr;  // [row_count], for rows that ask for one
  void* scratch = nullptr;    // SampleScratchBytes(row_count, width), at a multiple of 16
  std::uint32_t row_count = 0;
  std::uint32_t width = 0;
};
absl::Status SampleRows(const SampleArgs& args, Stream stream);
std::uint64_t SampleScratchBytes(std::uint32_t rows, std::uint32_t width);

}  // namespace penstock::shard::cuda
