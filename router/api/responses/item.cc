#include "router/api/responses/item.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "router/json/writer.h"

namespace penstock::router::responses {
namespace {

// Reasoning in `encrypted_content`, for clients that send back nothing else. The prefix
// shows that Penstock wrote it. The content of other servers cannot be read.
constexpr std::string_view kOpaque = "penstock:";

// The keys of an item that mean something here.
struct Keys {
  std::string type, id, role, call_id, name, arguments, encrypted_content;
  std::string content, output, summary;  // joined texts
  bool has_content = false;
  bool has_output = false;
};

constexpr std::pair<std::string_view, std::string Keys::*> kStrings[] = {
    {"type", &Keys::type},
    {"id", &Keys::id},
    {"role", &Keys::role},
    {"call_id", &Keys::call_id},
    {"name", &Keys::name},
    {"arguments", &Keys::arguments},
    {"encrypted_content", &Keys::encrypted_content},
};

constexpr std::pair<std::string_view, std::string Keys::*> kTexts[] = {
    {"content", &Keys::content},
    {"output", &Keys::output},
    {"summary", &Keys::summary},
};

constexpr std::pair<std::string_view, ItemKind> kTypes[] = {
    {"message", ItemKind::kMessage},
    {"function_call", ItemKind::kCall},
    {"function_call_output", ItemKind::kCallOutput},
    {"reasoning", ItemKind::kReasoning},
    {"item_reference", ItemKind::kReference},
};

bool IsText(std::string_view type) {
  constexpr std::string_view kParts[] = {"input_text",     "output_text",  "text",
                                         "reasoning_text", "summary_text", "refusal"};
  return std::ranges::find(kParts, type) != std::end(kParts);
}

// Appends the text of one part of a content.
bool ReadPart(json::Reader& reader, std::string& joined) {
  std::string key, type = "text", text;
  bool has_text = false;
  if (!reader.EnterObject("an object")) return false;
  while (reader.NextKey(key)) {
    if (!reader.Colon()) return false;
    if (key == "type") {
      if (!reader.ReadString(type, "a string")) return false;
    } else if ((key == "text" || key == "refusal") && reader.NextIs('"')) {
      has_text = true;
      if (!reader.ReadString(text, "a string")) return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  if (!reader.ok()) return false;
  if (!IsText(type)) {
    return reader.FailValue(json::DescribeString(type),
                            "a part of type `input_text` or `output_text`");
  }
  if (!has_text) return reader.FailHere("missing field `text`");
  joined += text;
  return true;
}

// A string, or a list of parts as one string.
bool ReadText(json::Reader& reader, std::string& out) {
  if (reader.NextIs('"')) return reader.ReadString(out, "a string");
  if (!reader.NextIs('[')) return reader.FailNext("a string or an array of parts");
  if (!reader.EnterArray("a string or an array of parts")) return false;
  while (reader.NextElement()) {
    if (!ReadPart(reader, out)) return false;
  }
  return reader.ok();
}

bool ReadMember(json::Reader& reader, std::string_view key, Keys& keys) {
  if (reader.TakeNull()) return true;
  for (const auto& [name, member] : kStrings) {
    if (key == name) return reader.ReadString(keys.*member, "a string");
  }
  for (const auto& [name, member] : kTexts) {
    if (key != name) continue;
    keys.has_content |= key == "content";
    keys.has_output |= key == "output";
    return ReadText(reader, keys.*member);
  }
  return reader.Skip();
}

bool Missing(json::Reader& reader, std::string_view key) {
  return reader.FailHere("missing field `" + std::string(key) + "`");
}

bool FailMember(json::Reader& reader, std::string_view key, std::string_view limit,
                std::string_view given) {
  std::string what = "`" + std::string(key) + "` must be ";
  return reader.FailHere(what.append(limit) + ". Given: " + json::DescribeString(given));
}

bool FindKind(json::Reader& reader, const Keys& keys, ItemKind& kind) {
  if (keys.type.empty()) {
    if (keys.role.empty() && keys.id.empty()) return Missing(reader, "type");
    kind = keys.role.empty() ? ItemKind::kReference : ItemKind::kMessage;
    return true;
  }
  for (const auto& [name, value] : kTypes) {
    if (keys.type != name) continue;
    kind = value;
    return true;
  }
  return FailMember(reader, "type",
                    "message, function_call, function_call_output, reasoning or item_reference",
                    keys.type);
}

bool CheckMessage(json::Reader& reader, const Keys& keys) {
  constexpr std::string_view kRoles[] = {"user", "assistant", "system", "developer"};
  if (keys.role.empty()) return Missing(reader, "role");
  if (std::ranges::find(kRoles, keys.role) == std::end(kRoles)) {
    return FailMember(reader, "role", "user, assistant, system or developer", keys.role);
  }
  return keys.has_content || keys.role == "assistant" || Missing(reader, "content");
}

// Whether the item has the keys of its kind.
bool CheckKeys(json::Reader& reader, ItemKind kind, const Keys& keys) {
  switch (kind) {
    case ItemKind::kMessage:
      return CheckMessage(reader, keys);
    case ItemKind::kCall:
      if (keys.call_id.empty()) return Missing(reader, "call_id");
      return !keys.name.empty() || Missing(reader, "name");
    case ItemKind::kCallOutput:
      if (keys.call_id.empty()) return Missing(reader, "call_id");
      return keys.has_output || Missing(reader, "output");
    case ItemKind::kReasoning:
      return true;
    case ItemKind::kReference:
      return !keys.id.empty() || Missing(reader, "id");
  }
  return true;
}

// The text itself, else what this server made of it for the client, else its summary.
std::string ReasoningText(Keys keys) {
  if (!keys.content.empty()) return std::move(keys.content);
  if (keys.encrypted_content.starts_with(kOpaque)) {
    return keys.encrypted_content.substr(kOpaque.size());
  }
  return std::move(keys.summary);
}

bool ReadItem(json::Reader& reader, Item& item) {
  Keys keys;
  std::string key;
  if (!reader.EnterObject("an item")) return false;
  while (reader.NextKey(key)) {
    if (!reader.Colon() || !ReadMember(reader, key, keys)) return false;
  }
  if (!reader.ok() || !FindKind(reader, keys, item.kind)) return false;
  if (!CheckKeys(reader, item.kind, keys)) return false;
  item.id = std::move(keys.id);
  item.role = std::move(keys.role);
  item.call_id = std::move(keys.call_id);
  item.name = std::move(keys.name);
  item.arguments = std::move(keys.arguments);
  if (item.kind == ItemKind::kReasoning) {
    item.text = ReasoningText(std::move(keys));
  } else {
    item.text = std::move(item.kind == ItemKind::kCallOutput ? keys.output : keys.content);
  }
  return true;
}

void AppendMessage(std::string& out, const Item& item, bool begun) {
  const bool answer = item.role == "assistant";
  const auto part = [&](std::string& list) {
    list += '[';
    if (begun && answer) {
      json::AppendObject(list, "type", "output_text", "text", item.text, "annotations",
                         json::Raw{"[]"}, "logprobs", json::Raw{item.logprobs});
    } else if (begun) {
      json::AppendObject(list, "type", "input_text", "text", item.text);
    }
    list += ']';
  };
  json::AppendObject(out, "id", item.id, "type", "message", "status", item.status, "role",
                     item.role, "content", part);
}

void AppendReasoning(std::string& out, const Item& item, bool begun) {
  const auto part = [&](std::string& list) {
    list += '[';
    if (begun) json::AppendObject(list, "type", "reasoning_text", "text", item.text);
    list += ']';
  };
  json::AppendComma(out);
  out += '{';
  json::AppendMembers(out, "id", item.id, "type", "reasoning", "summary", json::Raw{"[]"},
                      "content", part);
  if (item.opaque && begun) {
    json::AppendMembers(out, "encrypted_content", std::string(kOpaque) + item.text);
  }
  json::AppendMembers(out, "status", item.status);
  out += '}';
}

}  // namespace

bool ReadValue(json::Reader& reader, Input& out, std::string_view expected) {
  if (reader.NextIs('"')) {
    Item& item = out.items.emplace_back();
    item.role = "user";
    return reader.ReadString(item.text, expected);
  }
  if (!reader.NextIs('[')) return reader.FailNext(expected);
  if (!reader.EnterArray(expected)) return false;
  while (reader.NextElement()) {
    if (out.items.size() == kMaxItems) {
      return reader.FailHere("`input` must have at most " + std::to_string(kMaxItems) + " items");
    }
    if (!ReadItem(reader, out.items.emplace_back())) return false;
  }
  return reader.ok();
}

void AppendItem(std::string& out, const Item& item) {
  const bool begun = item.status != "in_progress";
  switch (item.kind) {
    case ItemKind::kMessage:
      return AppendMessage(out, item, begun);
    case ItemKind::kReasoning:
      return AppendReasoning(out, item, begun);
    case ItemKind::kCall:
      return json::AppendObject(out, "id", item.id, "type", "function_call", "status", item.status,
                                "call_id", item.call_id, "name", item.name, "arguments",
                                item.arguments);
    case ItemKind::kCallOutput:
      return json::AppendObject(out, "id", item.id, "type", "function_call_output", "status",
                                item.status, "call_id", item.call_id, "output", item.text);
    case ItemKind::kReference:
      return json::AppendObject(out, "id", item.id, "type", "item_reference");
  }
}

std::string ItemsText(const std::vector<Item>& items) {
  std::string out;
  json::AppendArray(out, items, AppendItem);
  return out;
}

}  // namespace penstock::router::responses
