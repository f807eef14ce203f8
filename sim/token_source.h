// What a simulated model says. A token is a hash of everything before it, so a lost, repeated or
// crossed token changes all that follow, and a request's output does not depend on its batch mates,
// on chunking, on preemption or on where its prefix came from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.h"
#include "sim/random.h"

namespace penstock::sim {

constexpr TokenId kEosToken = 2;

// Hash of a token sequence, one token at a time.
using History = std::uint64_t;
constexpr History kEmptyHistory = 0x70656e73746f636bull;
inline History Extend(History history, TokenId token) {
  return Mix(history, static_cast<std::uint32_t>(token));
}
inline History HistoryOf(std::span<const TokenId> tokens) {
  History history = kEmptyHistory;
  for (const TokenId token : tokens) history = Extend(history, token);
  return history;
}

struct TokenSource {
  std::uint32_t eos_one_in = 0;  // chance of an end of sequence after each token; 0 = never

  // `may_end`: the end of the sequence is not masked (min_new_tokens, ignore_eos).
  TokenId After(History history, bool may_end) const {
    if (may_end && eos_one_in > 0 && Mix(history, 2) % eos_one_in == 0) return kEosToken;
    return static_cast<TokenId>(10 + Mix(history, 1) % 1000);
  }

  // The output of a prompt: `limit` tokens, or fewer when an end of sequence (its last) comes.
  std::vector<TokenId> Output(std::span<const TokenId> prompt, std::uint32_t limit,
                              std::uint32_t min_new_tokens = 0) const {
    std::vector<TokenId> output;
    History history = HistoryOf(prompt);
    while (output.size() < limit && (output.empty() || output.back() != kEosToken)) {
      output.push_back(After(history, output.size() >= min_new_tokens));
      history = Extend(history, output.back());
    }
    return output;
  }
};

}  // namespace penstock::sim
