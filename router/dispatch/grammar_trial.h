// One grammar tried out: compiled, and followed for a while along outputs of its own, since some
// expressions explode only with their first tokens.
//
// Runs on a thread that does nothing else: its processor time is what kCpuLimit bounds. That, and
// whether to go on, is looked at between the steps of the work; compiling itself is bounded by
// counted work.
#pragma once

#include <absl/status/status.h>
#include <time.h>

#include <chrono>
#include <functional>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "text/grammar.h"

namespace penstock::router {

struct GrammarTrial {
  static constexpr std::chrono::milliseconds kCpuLimit{250};
  static constexpr std::chrono::milliseconds kUsualCpu{20};  // usual grammars take less

  // InvalidArgument, ResourceExhausted: in words that follow "grammar is not valid: ".
  // Cancelled: `goes_on` said no.
  static absl::Status Run(const text::Vocabulary& vocabulary, const std::vector<TokenId>& eos_ids,
                          const GrammarSpec& spec, const std::function<bool()>& goes_on);
  // Whether a thread has taken all the time that it may; `cpu` is its clock of processor time.
  static bool IsUsedUp(clockid_t cpu);
  // Whether the calling thread has taken more than usual grammars do.
  static bool IsCostly();
  // What Run says of a grammar that has used up its time.
  static absl::Status TooSlow();
};

}  // namespace penstock::router
