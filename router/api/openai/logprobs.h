// Log-probabilities of one choice, in the shapes of OpenAI and vLLM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "router/engine.h"

namespace penstock::router::openai {

// Logprobs of one choice that wait to be sent. A token's entry waits as long as its text does, so
// that no part of a stop string shows in the logprobs.
class Logprobs {
 public:
  // `echo`: the prompt's tokens are entries, too, and so are special tokens, whose text is not
  // shown. Then there is an entry for each token.
  Logprobs(bool chat, bool echo) : chat_(chat), echo_(echo) {}

  // The entries of an echoed prompt, before all others, with at most `top_n` alternatives each.
  void AddPromptBefore(const GenerationStart& start, std::size_t top_n);
  void Add(const GenerationToken& token);
  void Commit() { committed_ = held_; }
  void Drop() { entries_.resize(committed_), held_ = committed_; }
  // The committed entries as OpenAI's object. They are removed.
  std::string Take();
  // The committed entries as a list in a chat's form. They are removed. `bytes`: the length of the
  // text; only the tokens at its end that make it up are in the list.
  std::string TakeList(std::size_t bytes);

 private:
  void Remove(std::size_t count);
  std::string TakeCompletion(std::size_t count);

  bool chat_;
  bool echo_;
  std::vector<GenerationToken> entries_;
  std::size_t committed_ = 0;
  std::size_t held_ = 0;
  std::uint64_t text_offset_ = 0;
};

// vLLM's `prompt_logprobs`: for each token null, or its own and at most `top_n` alternatives, by
// token id.
std::string PromptLogprobsText(const GenerationStart& start, std::size_t top_n);

}  // namespace penstock::router::openai
