// SGLang's answers of generate: one object, a list of them, or an event stream whose events carry
// the whole text so far.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "router/api/run.h"

namespace penstock::router::sglang {

// What one result shows.
struct ResultStyle {
  std::string id;
  bool prompt_only = false;  // max_new_tokens is 0
  bool logprobs = false;
  std::int64_t logprob_start = -1;  // the first prompt token with an entry; -1: none has one
  std::uint32_t top_logprobs = 0;
  bool texts = false;  // entries of log-probabilities have the texts of their tokens
};

struct AnswerStyle {
  std::vector<ResultStyle> results;  // in the order of the candidates
  bool listed = false;               // the answer is a list, even of one result
  std::string weight_version;
};

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream);

}  // namespace penstock::router::sglang
