// The output of a response as it grows: its items and, for a stream, the events about them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/answer/events.h"
#include "router/answer/format.h"
#include "router/api/responses/item.h"
#include "router/json/writer.h"

namespace penstock::router::responses {

struct OutputStyle {
  std::string suffix;  // of the items' ids
  const answer::Format* format = &answer::NoFormat();
  std::size_t earlier_calls = 0;  // in the conversation
  bool opaque_reasoning = false;  // items of reasoning have `encrypted_content`
  bool stream = false;            // events are written
};

class Output {
 public:
  explicit Output(OutputStyle style) : style_(std::move(style)) {}

  // `logprobs`: of a text, as a JSON array.
  void Add(const answer::Event& event, std::string_view logprobs);
  // Ends the item that is open, if there is one.
  void Close(std::string_view status);

  const std::vector<Item>& items() const { return items_; }

  // An event with its number. Nothing happens if this is no stream.
  template <class... Members>
  void Emit(std::string_view type, const Members&... members) {
    if (!style_.stream) return;
    events_.append("event: ").append(type).append("\ndata: ");
    json::AppendObject(events_, "type", type, "sequence_number", sequence_++, members...);
    events_ += "\n\n";
  }
  // Since the last call.
  std::string TakeEvents() { return std::exchange(events_, ""); }

 private:
  void On(const answer::TextDelta& delta, std::string_view logprobs);
  void On(const answer::ReasoningDelta& delta, std::string_view);
  void On(const answer::CallBegin& call, std::string_view);
  void On(const answer::ArgumentsDelta& delta, std::string_view);
  void On(const answer::CallEnd&, std::string_view) { Close("completed"); }

  // The open item, which is one of this kind.
  Item& Need(ItemKind kind);
  void Open(Item item);
  void EmitItem(std::string_view type);
  void EmitText(std::string_view type, std::string_view key, std::string_view text,
                std::string_view logprobs);
  void EmitPart(std::string_view type);
  std::size_t index() const { return items_.size() - 1; }

  const OutputStyle style_;
  std::vector<Item> items_;
  bool open_ = false;  // the last item grows
  std::size_t sequence_ = 0;
  std::string events_;
};

}  // namespace penstock::router::responses
