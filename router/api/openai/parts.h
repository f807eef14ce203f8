// JSON that OpenAI's plain answers and chunks share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/openai/answer.h"

namespace penstock::router::openai {

// {"id":…,"object":…,"created":…,"model":…,"system_fingerprint":…,"choices":[
std::string AnswerPrefix(const AnswerStyle& style, std::string_view object);

std::string_view FinishReasonName(FinishReason reason);

// Token counts of all choices; a prompt with several choices counts once.
struct Usage {
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;
  std::uint64_t completion = 0;
  void Add(const AnswerStyle& style, std::size_t choice, const GenerationEnd& end);
};
// "usage":{…}
void AppendUsage(std::string& out, const Usage& usage);

// Logprobs of one choice that wait to be sent. A token's entry waits as long as its text does, so
// that no part of a stop string shows in the logprobs.
class Logprobs {
 public:
  explicit Logprobs(bool chat) : chat_(chat) {}
  void Add(const GenerationToken& token);
  void Commit() { committed_ = held_; }
  void Drop() { entries_.resize(committed_), held_ = committed_; }
  bool holds() const { return held_ > committed_; }
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
