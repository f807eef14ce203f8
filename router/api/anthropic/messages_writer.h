// Anthropic's system prompt and messages as OpenAI's messages. Adjacent turns of one role become
// one, as Anthropic's do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "router/api/anthropic/request.h"
#include "router/api/errors.h"

namespace penstock::router::anthropic {

// Use it once: all Adds, then Finish.
class MessagesWriter {
 public:
  // An error names the block by its path.
  std::optional<ApiError> AddSystem(const Content& content);
  std::optional<ApiError> Add(const Message& message, std::size_t index);
  void Finish() { CloseTurn(); }

  // What was added so far is to be kept, to the end of its message.
  void Keep();

  // The array.
  std::string All() const { return "[" + messages_ + "]"; }
  // The array up to what is to be kept; empty if nothing is.
  std::string Kept() const;

 private:
  enum class Role : std::uint8_t { kNone, kSystem, kUser, kAssistant };

  std::optional<ApiError> AddBlock(Role role, const Block& block, const std::string& path);
  std::optional<ApiError> AddForUser(const Block& block, const std::string& path);
  std::optional<ApiError> AddForAssistant(const Block& block, const std::string& path);
  std::optional<ApiError> AddResult(const Block& block, const std::string& path);
  void AddText(std::string_view text);
  void Turn(Role role);
  void CloseTurn();
  void RecordKept();

  std::string messages_;  // complete ones
  Role role_ = Role::kNone;
  std::optional<std::string> text_;  // of the turn
  std::string reasoning_;
  std::string calls_;
  std::unordered_set<std::string> call_ids_;  // of all turns
  bool keep_ = false;                         // when the turn closes
  bool asked_ = false;                        // a message of the user is complete
  std::optional<std::size_t> kept_;
  bool kept_asked_ = false;
};

}  // namespace penstock::router::anthropic
