#include "router/api/responses/output.h"

#include <variant>

namespace penstock::router::responses {
namespace {

std::string_view PrefixOf(ItemKind kind) {
  if (kind == ItemKind::kCall) return "fc_";
  return kind == ItemKind::kReasoning ? "rs_" : "msg_";
}

// `part` as a part of a message or of reasoning.
std::string PartText(ItemKind kind, std::string_view text, std::string_view logprobs) {
  if (kind == ItemKind::kReasoning) return json::ObjectText("type", "reasoning_text", "text", text);
  return json::ObjectText("type", "output_text", "text", text, "annotations", json::Raw{"[]"},
                          "logprobs", json::Raw{logprobs});
}

// Appends the elements of one JSON array to another.
void AppendElements(std::string& list, std::string_view more) {
  if (more.size() <= 2) return;
  list.pop_back();
  json::AppendComma(list);
  list.append(more.substr(1));
}

}  // namespace

void Output::Add(const answer::Event& event, std::string_view logprobs) {
  std::visit([&](const auto& e) { On(e, logprobs); }, event);
}

void Output::On(const answer::TextDelta& delta, std::string_view logprobs) {
  Item& item = Need(ItemKind::kMessage);
  item.text += delta.text;
  AppendElements(item.logprobs, logprobs);
  EmitText("response.output_text.delta", "delta", delta.text, logprobs);
}

void Output::On(const answer::ReasoningDelta& delta, std::string_view) {
  Need(ItemKind::kReasoning).text += delta.text;
  EmitText("response.reasoning_text.delta", "delta", delta.text, "[]");
}

void Output::On(const answer::CallBegin& call, std::string_view) {
  Item item;
  item.kind = ItemKind::kCall;
  item.name = call.name;
  item.call_id = answer::MakeCallId(*style_.format, style_.suffix, call.name,
                                    style_.earlier_calls + call.index);
  Open(std::move(item));
}

void Output::On(const answer::ArgumentsDelta& delta, std::string_view) {
  Item& item = items_.back();
  item.arguments += delta.json;
  Emit("response.function_call_arguments.delta", "item_id", item.id, "output_index", index(),
       "delta", delta.json);
}

Item& Output::Need(ItemKind kind) {
  if (!open_ || items_.back().kind != kind) {
    Item item;
    item.kind = kind;
    if (kind == ItemKind::kMessage) item.role = "assistant";
    Open(std::move(item));
  }
  return items_.back();
}

void Output::Open(Item item) {
  Close("completed");
  item.id = std::string(PrefixOf(item.kind)) + style_.suffix + "-" + std::to_string(items_.size());
  item.status = "in_progress";
  item.opaque = style_.opaque_reasoning;
  items_.push_back(std::move(item));
  open_ = true;
  EmitItem("response.output_item.added");
  EmitPart("response.content_part.added");
}

void Output::Close(std::string_view status) {
  if (!std::exchange(open_, false)) return;
  Item& item = items_.back();
  item.status = status;
  if (item.kind == ItemKind::kCall) {
    Emit("response.function_call_arguments.done", "item_id", item.id, "output_index", index(),
         "name", item.name, "arguments", item.arguments);
  } else {
    const bool text = item.kind == ItemKind::kMessage;
    EmitText(text ? "response.output_text.done" : "response.reasoning_text.done", "text", item.text,
             item.logprobs);
    EmitPart("response.content_part.done");
  }
  EmitItem("response.output_item.done");
}

void Output::EmitItem(std::string_view type) {
  const auto item = [this](std::string& out) { AppendItem(out, items_.back()); };
  Emit(type, "output_index", index(), "item", item);
}

void Output::EmitText(std::string_view type, std::string_view key, std::string_view text,
                      std::string_view logprobs) {
  const Item& item = items_.back();
  if (item.kind == ItemKind::kReasoning) {
    return Emit(type, "item_id", item.id, "output_index", index(), "content_index", 0, key, text);
  }
  Emit(type, "item_id", item.id, "output_index", index(), "content_index", 0, key, text, "logprobs",
       json::Raw{logprobs});
}

void Output::EmitPart(std::string_view type) {
  const Item& item = items_.back();
  if (item.kind == ItemKind::kCall) return;
  Emit(type, "item_id", item.id, "output_index", index(), "content_index", 0, "part",
       json::Raw{PartText(item.kind, item.text, item.logprobs)});
}

}  // namespace penstock::router::responses
