// Says whether a grammar can be enforced, before a shard sees it: compiles it and follows
// some outputs for a while, since some expressions explode only with their first tokens.
//
// Limits: 256 KiB of source (text/grammar.h); kCpuLimit of processor time and kWallLimit until the
// answer. Two checks run at once, each on a thread of lower priority, so that neither requests
// without grammars nor streams that run feel them. A check that overruns is left to end by itself
// (nothing can stop it) and keeps its seat until then; who finds no seat in time is told to try
// again later.
//
// Verdicts are kept: the kEntries latest, with at most kCachedBytes of sources.
//
// Thread-safe. Check blocks, so it belongs on a thread that nobody else waits for.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "text/tokenizer.h"

namespace penstock::router {

class GrammarChecker {
 public:
  static constexpr std::chrono::milliseconds kCpuLimit{250};
  static constexpr std::chrono::milliseconds kWallLimit{2000};
  static constexpr std::size_t kEntries = 1024;
  static constexpr std::size_t kCachedBytes = std::size_t{16} << 20;

  // Prepares the vocabulary on a thread of its own. `rows`: of the model's logits.
  GrammarChecker(std::shared_ptr<const text::Tokenizer> tokenizer, std::uint32_t rows,
                 std::vector<TokenId> eos_ids);
  ~GrammarChecker();
  GrammarChecker(const GrammarChecker&) = delete;
  GrammarChecker& operator=(const GrammarChecker&) = delete;

  // InvalidArgument, ResourceExhausted: the grammar is refused, in words that follow "grammar is
  // not valid: ". Unavailable: no seat was free.
  absl::Status Check(const GrammarSpec& spec);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with checks that overran
};

}  // namespace penstock::router
