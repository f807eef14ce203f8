// The logprobs of a choice, in OpenAI's two forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "router/engine.h"

namespace penstock::router::openai {

// Logprobs of one choice that wait to be sent. A token's entry waits as long as its text does, so
// that no part of a stop string shows in the logprobs.
class Logprobs {
 public:
  explicit Logprobs(bool chat) : chat_(chat) {}
  void Add(const GenerationToken& token);
  void Commit() { committed_ = held_; }
  void Drop() { entries_.resize(committed_), held_ = committed_; }
  // The committed entries as OpenAI's object. They are removed.
  std::string Take();

 private:
  std::string TakeChat(std::size_t count) const;
  std::string TakeCompletion(std::size_t count);

  bool chat_;
  std::vector<GenerationToken> entries_;
  std::size_t committed_ = 0;
  std::size_t held_ = 0;
  std::uint64_t text_offset_ = 0;
};

}  // namespace penstock::router::openai
