// Writes Ollama's answers: one object, or a line of JSON for each part of the answer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "router/answer/reader.h"
#include "router/api/run.h"

namespace penstock::router::ollama {

struct AnswerStyle {
  bool chat = true;   // else the text is `response`
  std::string id;     // unique
  std::string model;  // as the client named it
  const answer::Format* format = &answer::NoFormat();
  answer::ReadOptions read = {};
  std::size_t earlier_calls = 0;  // in the messages
};

// In a stream an error before the first line is answered with its own status. A later one is the
// last line.
std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style,
                                         bool stream);

// The answer to a request without a prompt, which asks that the model be loaded.
std::string LoadedText(const AnswerStyle& style);

}  // namespace penstock::router::ollama
