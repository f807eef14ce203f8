// What token selection needs of each running sequence besides its logits, and how a sampled token
// changes the sequence.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <vector>

#include "common/plan/step_result.h"
#include "shard/executor/executor_options.h"
#include "shard/executor/grammar_state.h"
#include "shard/executor/slot_table.h"
#include "shard/sampling/processors.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard {

// Values that rank 0 broadcasts in place of a sampled token: sampling failed (for example the
// logits hold a NaN), or no token was selected in this step.
inline constexpr TokenId kSamplingFailed = -1;
inline constexpr TokenId kNotSelected = -2;

class SamplingState {
 public:
  // All outlive this object.
  SamplingState(const ExecutorOptions& options, SlotTable& slots, GrammarState& grammars);

  void Start(const RankSequence& sequence);
  void End(SlotId slot);

  // How the next token of the sequence is to be sampled. `masked` receives the tokens that must
  // not be sampled now; the request refers to it.
  SampleRequest RequestFor(const RankSequence& sequence, std::vector<TokenId>& masked);

  // The sequence of `result` continues with `token`, which is added to `result`.
  void Append(SampledToken token, SequenceResult& result);

  // The same with its forced drafts, up to the end of the sequence. The grammar has them already.
  void AppendForced(SequenceResult& result);

  // The sequence of `result` ends with ShardFinish::kError. A reason in result.error is kept.
  void Fail(SequenceResult& result);

  // Internal, unless the token that rank 0 named is in the vocabulary.
  absl::Status CheckToken(TokenId token) const;

 private:
  // Appends the token to the sequence and its history.
  void Accept(RankSequence& sequence, TokenId token, SequenceResult& result);

  const ExecutorOptions& options_;
  SlotTable& slots_;
  GrammarState& grammars_;
  std::vector<std::optional<TokenHistory>> histories_;  // by slot, where penalties need one
};

}  // namespace penstock::shard
