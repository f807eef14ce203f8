#include "router/dispatch/grammar_trial.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/status.h"

namespace penstock::router {
namespace {

constexpr int kFollowedTokens = 400;
constexpr int kFollowedOutputs = 10;

// A token of the mask that is not among `ends`, the first one behind a place that `draw` chooses.
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

std::chrono::nanoseconds TimeOf(clockid_t cpu) {
  timespec used{};
  ::clock_gettime(cpu, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

absl::Status MayGoOn(const std::function<bool()>& goes_on) {
  if (GrammarTrial::IsUsedUp(CLOCK_THREAD_CPUTIME_ID)) return GrammarTrial::TooSlow();
  if (!goes_on()) return absl::CancelledError("not to go on");
  return absl::OkStatus();
}

// Outputs of tokens that look random and are the same each time.
absl::Status Follow(const text::CompiledGrammar& grammar, std::uint32_t rows,
                    const std::vector<TokenId>& ends, const std::function<bool()>& goes_on) {
  PENSTOCK_ASSIGN_OR_RETURN(auto matcher, grammar.Start());
  std::vector<std::uint32_t> mask(text::MaskWords(rows));
  std::uint64_t draw = 0;
  int outputs = 1;
  for (int i = 0; i < kFollowedTokens; ++i) {
    PENSTOCK_RETURN_IF_ERROR(matcher->Mask(mask));
    PENSTOCK_RETURN_IF_ERROR(MayGoOn(goes_on));
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

absl::Status GrammarTrial::Run(const text::Vocabulary& vocabulary,
                               const std::vector<TokenId>& eos_ids, const GrammarSpec& spec,
                               const std::function<bool()>& goes_on) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto grammar, vocabulary.Compile(spec, {}));
  PENSTOCK_RETURN_IF_ERROR(MayGoOn(goes_on));
  return Follow(*grammar, vocabulary.rows(), eos_ids, goes_on);
}

bool GrammarTrial::IsUsedUp(clockid_t cpu) { return TimeOf(cpu) > kCpuLimit; }

bool GrammarTrial::IsCostly() { return TimeOf(CLOCK_THREAD_CPUTIME_ID) > kUsualCpu; }

absl::Status GrammarTrial::TooSlow() {
  return absl::ResourceExhaustedError("it takes more than " + std::to_string(kCpuLimit.count()) +
                                      " ms to compile and to follow for " +
                                      std::to_string(kFollowedTokens) + " tokens");
}

}  // namespace penstock::router
