// Tries a grammar out: compiles it and computes masks along a few hundred tokens, as a sequence
// would. This finds grammars that do not compile and those whose masks take too long.
//
// Any thread, which must do nothing else meanwhile: its processor time is limited. The limit is
// checked between the steps of the work. Compiling is one step, bounded by counted work.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "text/grammar.h"

namespace penstock::router {

// Processor time that the calling thread may use from now on.
class CpuLimit {
 public:
  static constexpr std::chrono::milliseconds kLimit{250};

  CpuLimit() : end_(Used() + kLimit) {}
  bool IsUsedUp() const { return Used() > end_; }

 private:
  static std::chrono::nanoseconds Used();

  const std::chrono::nanoseconds end_;
};

// Errors: InvalidArgument or ResourceExhausted, with a message that can follow "grammar is not
// valid: ".
absl::Status TryGrammar(const text::Vocabulary& vocabulary, const std::vector<TokenId>& eos_ids,
                        const GrammarSpec& spec, const CpuLimit& limit);

}  // namespace penstock::router
