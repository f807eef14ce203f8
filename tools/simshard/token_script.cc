#include "tools/simshard/token_script.h"

#include <algorithm>
#include <utility>

namespace penstock::simshard {

std::uint64_t MixHash(std::uint64_t state, std::uint64_t word) {
  // splitmix64's finisher over the sum.
  std::uint64_t mixed = state + 0x9E3779B97F4A7C15ULL + word;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

TokenScript::TokenScript(const SequenceStart& start, TokenRule rule, const ModelFacts& facts,
                         EchoScript echo)
    : facts_(&facts), rule_(rule), echo_(std::move(echo)) {
  const std::size_t generated_before =
      std::min<std::size_t>(start.sample_index_base, start.prompt.size());
  const std::span<const TokenId> prompt(start.prompt.data(),
                                        start.prompt.size() - generated_before);
  key_ = MixHash(0, start.sampling.do_sample ? start.sampling.seed : 0);
  key_ = MixHash(key_, start.sampling.sibling);
  for (TokenId token : prompt) {
    key_ = MixHash(key_, static_cast<std::uint64_t>(token));
    if (rule == TokenRule::kEcho && !facts.special[static_cast<std::size_t>(token)]) {
      script_.push_back(token);
    }
  }
  if (echo_.tokens) script_ = *std::exchange(echo_.tokens, std::nullopt);
}

TokenId TokenScript::At(std::uint32_t index, bool end_masked) const {
  if (rule_ == TokenRule::kHash) {
    return facts_->regular[MixHash(key_, index) % facts_->regular.size()];
  }
  if (index < script_.size()) return script_[index];
  if (echo_.endless && !script_.empty()) return script_[index % script_.size()];
  if (!end_masked) return facts_->eos_token_ids.front();
  return script_.empty() ? facts_->regular.front() : script_[index % script_.size()];
}

float SimulatedLogprob(std::uint32_t index) { return -static_cast<float>(1 + index % 4) / 4.0f; }

}  // namespace penstock::simshard
