#include "router/dispatch/grammar_trial.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"

namespace penstock::router {
namespace {

constexpr int kFollowedTokens = 400;
constexpr int kFollowedOutputs = 10;

// The first token of the mask at or after a position that `draw` chooses, without those in `ends`.
std::optional<TokenId> Choose(const std::vector<std::uint32_t>& mask, std::uint32_t rows,
                              std::uint64_t draw, const std::vector<TokenId>& ends) {
  for (std::uint32_t i = 0; i < rows; ++i) {
    const auto token = static_cast<std::uint32_t>((draw + i) % rows);
    if (((mask[token / 32] >> (token % 32)) & 1) == 0) continue;
    const auto id = static_cast<TokenId>(token);
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) return id;
  }
  return std::nullopt;
}

absl::Status Check(const CpuLimit& limit) {
  if (!limit.IsUsedUp()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "it takes more than " + std::to_string(CpuLimit::kLimit.count()) +
      " ms to compile and to follow for " + std::to_string(kFollowedTokens) + " tokens");
}

// Follows outputs of pseudo-random tokens, the same each time.
absl::Status Follow(const text::CompiledGrammar& grammar, std::uint32_t rows,
                    const std::vector<TokenId>& ends, const CpuLimit& limit) {
  PENSTOCK_ASSIGN_OR_RETURN(auto matcher, grammar.Start());
  std::vector<std::uint32_t> mask(text::MaskWords(rows));
  std::uint64_t draw = 0;
  int outputs = 1;
  for (int i = 0; i < kFollowedTokens; ++i) {
    PENSTOCK_RETURN_IF_ERROR(matcher->Mask(mask));
    PENSTOCK_RETURN_IF_ERROR(Check(limit));
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    const std::optional<TokenId> token = Choose(mask, rows, draw >> 33, ends);
    if (!token && outputs++ == kFollowedOutputs) return absl::OkStatus();
    if (!token) {
      PENSTOCK_ASSIGN_OR_RETURN(matcher, grammar.Start());
      continue;
    }
    PENSTOCK_RETURN_IF_ERROR(matcher->Accept({&*token, 1}));
  }
  return absl::OkStatus();
}

}  // namespace

std::chrono::nanoseconds CpuLimit::Used() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

absl::Status TryGrammar(const text::Vocabulary& vocabulary, const std::vector<TokenId>& eos_ids,
                        const GrammarSpec& spec, const CpuLimit& limit) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto grammar, vocabulary.Compile(spec, {}));
  PENSTOCK_RETURN_IF_ERROR(Check(limit));
  return Follow(*grammar, vocabulary.rows(), eos_ids, limit);
}

}  // namespace penstock::router
