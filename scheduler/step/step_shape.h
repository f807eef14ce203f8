// What a step computes, in the five sums on which its time depends. Adding a sequence is cheap, and
// two steps with equal sums are predicted to take equally long.
#pragma once

#include <cstdint>

namespace penstock::scheduler {

struct StepShape {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t prompt_chunks = 0;   // sequences that compute prompt tokens
  std::uint64_t prompt_pairs2 = 0;   // twice the query-key pairs: sum of n * (2 * cached + n)
  std::uint64_t decode_rows = 0;     // every row of a sequence counts
  std::uint64_t decode_context = 0;  // sum over rows of the positions that they read

  std::uint64_t Tokens() const { return prompt_tokens + decode_rows; }

  // `count` prompt tokens after `cached` positions.
  void AddChunk(std::uint64_t cached, std::uint64_t count) {
    prompt_tokens += count;
    ++prompt_chunks;
    prompt_pairs2 += count * (2 * cached + count);
  }
  // `rows` rows of one sequence that read `context` positions each.
  void AddDecode(std::uint64_t context, std::uint64_t rows = 1) {
    decode_rows += rows;
    decode_context += rows * context;
  }
  friend bool operator==(const StepShape&, const StepShape&) = default;
};

}  // namespace penstock::scheduler
