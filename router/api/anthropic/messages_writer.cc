#include "router/api/anthropic/messages_writer.h"

#include <string_view>
#include <utility>
#include <variant>

#include "router/json/writer.h"

namespace penstock::router::anthropic {
namespace {

std::string In(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

ApiError WrongType(const std::string& path, std::string_view types, std::string_view given) {
  std::string text = json::DescribeString(given);
  const bool media = given == "image" || given == "document" || given == "audio";
  if (media) text += ", and this server's models read text only";
  ApiError error = MustBe(path + ".type", types, text);
  error.kind = ApiErrorKind::kUnsupported;
  return error;
}

// The text of a tool's result.
std::variant<std::string, ApiError> ResultText(const Content& content, const std::string& path) {
  std::string text;
  for (std::size_t i = 0; i < content.blocks.size(); ++i) {
    const Block& block = content.blocks[i];
    if (block.type != "text") return WrongType(In(path, i), "text", block.type);
    if (i > 0) text += '\n';
    text += block.text;
  }
  return text;
}

}  // namespace

std::optional<ApiError> MessagesWriter::AddSystem(const Content& content) {
  Turn(Role::kSystem);
  for (std::size_t i = 0; i < content.blocks.size(); ++i) {
    if (auto error = AddBlock(Role::kSystem, content.blocks[i], In("system", i))) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> MessagesWriter::Add(const Message& message, std::size_t index) {
  const std::string path = In("messages", index);
  Role role = Role::kNone;
  if (message.role == "user") role = Role::kUser;
  if (message.role == "assistant") role = Role::kAssistant;
  if (message.role == "system") role = Role::kSystem;
  if (role == Role::kNone) {
    return MustBe(path + ".role", "user, assistant or system", json::DescribeString(message.role));
  }
  if (message.content.blocks.empty()) {
    return Invalid(path + ".content", "must have at least one block");
  }
  Turn(role);
  for (std::size_t i = 0; i < message.content.blocks.size(); ++i) {
    const std::string block = In(path + ".content", i);
    if (auto error = AddBlock(role, message.content.blocks[i], block)) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> MessagesWriter::AddBlock(Role role, const Block& block,
                                                 const std::string& path) {
  std::optional<ApiError> error;
  if (block.type == "text") {
    AddText(block.text);
  } else if (role == Role::kAssistant) {
    error = AddForAssistant(block, path);
  } else if (role == Role::kUser) {
    error = AddForUser(block, path);
  } else {
    error = WrongType(path, "text", block.type);
  }
  if (block.cache_control) Keep();
  return error;
}

std::optional<ApiError> MessagesWriter::AddForUser(const Block& block, const std::string& path) {
  if (block.type != "tool_result") return WrongType(path, "text or tool_result", block.type);
  return AddResult(block, path);
}

// A result is a message of its own.
std::optional<ApiError> MessagesWriter::AddResult(const Block& block, const std::string& path) {
  if (block.tool_use_id.empty()) return Invalid(path + ".tool_use_id", "is missing");
  if (!call_ids_.contains(block.tool_use_id)) {
    return MustBe(path + ".tool_use_id", "the id of an earlier tool_use",
                  json::DescribeString(block.tool_use_id));
  }
  auto text = ResultText(block.content, path + ".content");
  if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
  CloseTurn();
  json::AppendObject(messages_, "role", "tool", "tool_call_id", block.tool_use_id, "content",
                     std::get<std::string>(text));
  asked_ = true;
  role_ = Role::kUser;
  return std::nullopt;
}

std::optional<ApiError> MessagesWriter::AddForAssistant(const Block& block,
                                                        const std::string& path) {
  if (block.type == "thinking") {
    reasoning_ += block.thinking;
    return std::nullopt;
  }
  if (block.type == "redacted_thinking") return std::nullopt;
  if (block.type != "tool_use") {
    return WrongType(path, "text, tool_use, thinking or redacted_thinking", block.type);
  }
  for (const auto& [key, value] : {std::pair{".id", &block.id}, std::pair{".name", &block.name}}) {
    if (value->empty()) return Invalid(path + key, "is missing");
  }
  const std::string_view input = block.input ? block.input->text : "{}";
  if (!input.starts_with('{')) return MustBe(path + ".input", "an object", input.substr(0, 100));
  call_ids_.insert(block.id);
  json::AppendObject(calls_, "id", block.id, "type", "function", "function",
                     json::Object("name", block.name, "arguments", input));
  return std::nullopt;
}

// The model wrote the texts of an answer one after the other. Other blocks are separate passages.
void MessagesWriter::AddText(std::string_view text) {
  if (text_ && role_ != Role::kAssistant) *text_ += '\n';
  if (!text_) text_.emplace();
  *text_ += text;
}

void MessagesWriter::Turn(Role role) {
  if (role != role_) CloseTurn();
  role_ = role;
}

void MessagesWriter::CloseTurn() {
  if (role_ == Role::kAssistant) {
    const bool calls_only = !calls_.empty() && text_.value_or("").empty();
    if (!text_) text_.emplace();
    json::AppendObject(messages_, "role", "assistant", "content",
                       calls_only ? std::nullopt : text_);
    messages_.pop_back();
    if (!reasoning_.empty()) json::AppendMembers(messages_, "reasoning_content", reasoning_);
    if (!calls_.empty()) messages_.append(",\"tool_calls\":[").append(calls_).append("]");
    messages_ += '}';
  } else if (text_ && (role_ == Role::kUser || !text_->empty())) {
    json::AppendObject(messages_, "role", role_ == Role::kUser ? "user" : "system", "content",
                       *text_);
    asked_ |= role_ == Role::kUser;
  }
  if (keep_) RecordKept();
  role_ = Role::kNone;
  text_.reset();
  reasoning_.clear();
  calls_.clear();
}

void MessagesWriter::Keep() {
  const bool pending = text_ || !calls_.empty() || !reasoning_.empty();
  keep_ = pending;
  if (!pending) RecordKept();
}

void MessagesWriter::RecordKept() {
  keep_ = false;
  kept_ = messages_.size();
  kept_asked_ = asked_;
}

// Many templates refuse messages without one of the user, so an empty one is added. Text that
// depends on it is not kept.
std::string MessagesWriter::Kept() const {
  if (!kept_) return "";
  std::string kept = "[" + messages_.substr(0, *kept_);
  if (!kept_asked_) json::AppendObject(kept, "role", "user", "content", "");
  return kept + "]";
}

}  // namespace penstock::router::anthropic
