// `penstock chat`: a conversation over /v1/chat/completions in a terminal, or over a pipe.
#pragma once

#include <boost/json/array.hpp>
#include <string>

#include "cli/words.h"
#include "common/options/table.h"

namespace penstock::cli {

// The turns of a conversation.
class Conversation {
 public:
  explicit Conversation(std::string system) : system_(std::move(system)) {}

  void Add(std::string_view role, std::string_view text);
  void DropLast() { turns_.pop_back(); }
  void Clear() { turns_.clear(); }
  void SetSystem(std::string text) { system_ = std::move(text); }

  // The body of a streamed request.
  std::string Body(const std::string& model) const;
  // For /save: "user: ..." paragraphs.
  std::string Transcript() const;

 private:
  std::string system_;
  boost::json::array turns_;
};

options::ProgramOptions ChatOptions();

int Chat(const Words& words);

}  // namespace penstock::cli
