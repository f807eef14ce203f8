#include "router/api/responses/chat_messages.h"

#include <optional>
#include <utility>

#include "router/json/writer.h"

namespace penstock::router::responses {
namespace {

// The message of the assistant that is being put together.
struct Turn {
  std::string reasoning;
  std::optional<std::string> text;
  std::string calls;  // OpenAI's objects
};

class MessageList {
 public:
  explicit MessageList(std::string_view instructions) {
    if (!instructions.empty()) system_ = {"system", std::string(instructions)};
  }

  void Add(const Item& item) {
    switch (item.kind) {
      case ItemKind::kMessage:
        return item.role == "assistant" ? AddAnswer(item) : AddMessage(item);
      case ItemKind::kCall:
        return AddCall(item);
      case ItemKind::kCallOutput:
        return AddOutput(item);
      case ItemKind::kReasoning:
        return AddReasoning(item);
      case ItemKind::kReference:
        return;  // the caller has put the item in its place
    }
  }

  std::string Take() {
    EndSystem();
    EndTurn();
    return std::move(out_) + "]";
  }

 private:
  using Message = std::pair<std::string, std::string>;  // role and text

  void AddMessage(const Item& item) {
    const bool is_system = item.role != "user";
    if (is_system && begins_) {
      if (system_) {
        system_->second += "\n\n" + item.text;
      } else {
        system_ = {item.role, item.text};
      }
      return;
    }
    EndSystem();
    EndTurn();
    json::AppendObject(out_, "role", item.role, "content", item.text);
  }

  // Two answers in a row are two messages; text after calls belongs to their message.
  void AddAnswer(const Item& item) {
    EndSystem();
    if (turn_ && turn_->text && turn_->calls.empty()) EndTurn();
    Turn& turn = OpenTurn();
    turn.text = turn.text.value_or("") + item.text;
  }

  void AddReasoning(const Item& item) {
    EndSystem();
    if (item.text.empty()) return;
    if (turn_ && (turn_->text || !turn_->calls.empty())) EndTurn();
    OpenTurn().reasoning += item.text;
  }

  void AddCall(const Item& item) {
    EndSystem();
    json::AppendObject(OpenTurn().calls, "id", item.call_id, "type", "function", "function",
                       json::Object("name", item.name, "arguments", item.arguments));
  }

  void AddOutput(const Item& item) {
    EndSystem();
    EndTurn();
    json::AppendObject(out_, "role", "tool", "tool_call_id", item.call_id, "content", item.text);
  }

  Turn& OpenTurn() { return turn_ ? *turn_ : turn_.emplace(); }

  void EndSystem() {
    if (std::exchange(begins_, false) && system_) {
      json::AppendObject(out_, "role", system_->first, "content", system_->second);
    }
  }

  void EndTurn() {
    if (!turn_) return;
    const Turn turn = *std::exchange(turn_, std::nullopt);
    json::AppendComma(out_);
    out_ += "{\"role\":\"assistant\"";
    if (!turn.reasoning.empty()) json::AppendMembers(out_, "reasoning_content", turn.reasoning);
    if (!turn.text && turn.calls.empty()) {
      json::AppendMembers(out_, "content", "");
    } else {
      json::AppendMembers(out_, "content", turn.text);
    }
    if (!turn.calls.empty()) out_.append(",\"tool_calls\":[").append(turn.calls).append("]");
    out_ += '}';
  }

  std::string out_ = "[";
  bool begins_ = true;  // only messages of the system have come
  std::optional<Message> system_;
  std::optional<Turn> turn_;
};

}  // namespace

std::string ChatMessages(std::string_view instructions, const std::vector<Item>& items) {
  MessageList messages(instructions);
  for (const Item& item : items) messages.Add(item);
  return messages.Take();
}

}  // namespace penstock::router::responses
