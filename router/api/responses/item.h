// The items of a response: what a conversation consists of, as input and as output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/json/reader.h"

namespace penstock::router::responses {

enum class ItemKind : std::uint8_t {
  kMessage,
  kCall,        // function_call
  kCallOutput,  // function_call_output
  kReasoning,
  kReference,  // item_reference
};

struct Item {
  ItemKind kind = ItemKind::kMessage;
  std::string id;
  std::string role;  // of a message
  std::string text;  // of a message, an output of a call or reasoning; parts are joined
  std::string call_id;
  std::string name;
  std::string arguments;
  std::string_view status = "completed";  // of static storage
  std::string logprobs = "[]";            // of the text, a JSON array
  bool opaque = false;                    // reasoning has its `encrypted_content`, too
};

inline constexpr std::size_t kMaxItems = 4096;

// The input of a request: its items. A string is a message of the user.
struct Input {
  std::vector<Item> items;
};

// Reads a string or an array of items. Unknown keys of items are skipped.
bool ReadValue(json::Reader& reader, Input& out, std::string_view expected);

// As OpenAI's object. An item in progress has no content yet.
void AppendItem(std::string& out, const Item& item);
std::string ItemsText(const std::vector<Item>& items);

}  // namespace penstock::router::responses
