// The tokens of a simulated model. A token is a hash of all tokens before it, so a lost, repeated
// or misdelivered token changes all later ones. The output of a request depends on nothing else:
// not on its batch, on chunking, on preemption or on the prefix cache.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
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

// The histories after each token of a tenant's prompt. Tenants share no prefix. Neither do texts
// whose K and V depend on another length (0: on none).
inline std::vector<History> HistoriesOf(std::string_view tenant, std::span<const TokenId> prompt,
                                        std::uint32_t length = 0) {
  History history = kEmptyHistory;
  for (const char c : tenant) history = Extend(history, c);
  if (length > 0) history = Mix(history, length);
  std::vector<History> histories;
  for (const TokenId token : prompt) histories.push_back(history = Extend(history, token));
  return histories;
}

struct TokenSource {
  std::uint32_t eos_one_in = 0;  // one token in this many ends the sequence; 0 = none

  // `may_end`: min_new_tokens and ignore_eos allow the end of the sequence.
  TokenId After(History history, bool may_end) const {
    if (may_end && eos_one_in > 0 && Mix(history, 2) % eos_one_in == 0) return kEosToken;
    return static_cast<TokenId>(10 + Mix(history, 1) % 1000);
  }

  // The output of a prompt: `limit` tokens, or fewer if the last one ends the sequence.
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
