#include "router/api/responses/lower.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "router/api/openai/tools.h"
#include "router/api/responses/response.h"
#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::responses {
namespace {

ApiError NotStored(const Store& store, std::string_view field, std::string_view what,
                   const std::string& id) {
  std::string message = "`" + std::string(field) + "` must be the id of a stored " +
                        std::string(what) + ". Given: " + json::DescribeString(id);
  if (!store.enabled()) message += ". This server stores none (--response-store-entries 0)";
  return {ApiErrorKind::kNotFound, std::move(message), std::string(field)};
}

std::string_view OutputOf(std::string_view object) {
  json::Reader reader(object);
  std::string key;
  std::string_view output = "[]";
  if (!reader.EnterObject("")) return output;
  while (reader.NextKey(key) && reader.Colon()) {
    if (key == "output") {
      reader.ReadRaw(output);
      break;
    }
    if (!reader.Skip()) break;
  }
  return output;
}

void NoteCall(const Item& item, std::unordered_set<std::string>& calls) {
  if (item.kind == ItemKind::kCall) calls.insert(item.call_id);
}

void Append(std::vector<Item>& items, std::vector<Item> more) {
  items.insert(items.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

// The item of this id, which some response of the tenant has as input or output.
std::optional<Item> FindItem(const Store& store, const std::string& tenant, const std::string& id) {
  const StoredPtr stored = store.Find(tenant, ResponseOfItem(id));
  if (stored == nullptr) return std::nullopt;
  for (const std::string_view list : {OutputOf(stored->object), std::string_view(*stored->input)}) {
    std::vector<Item> items = ReadStored(list);
    const auto found = std::ranges::find(items, id, &Item::id);
    if (found != items.end()) return std::move(*found);
  }
  return std::nullopt;
}

std::string NewId(const Item& item, const std::string& suffix, std::size_t place) {
  constexpr std::string_view kPrefixes[] = {"msg_", "fc_", "fco_", "rs_", "msg_"};
  return std::string(kPrefixes[static_cast<std::size_t>(item.kind)]) + suffix + "-i" +
         std::to_string(place);
}

}  // namespace

std::vector<Item> ReadStored(std::string_view json) {
  Input input;
  json::Reader reader(json);
  ReadValue(reader, input, "items");
  return std::move(input.items);
}

std::variant<std::vector<Item>, ApiError> Conversation(const Store& store,
                                                       const std::string& tenant, Input input,
                                                       const std::optional<std::string>& previous,
                                                       const std::string& suffix) {
  std::vector<Item> items;
  if (previous) {
    const StoredPtr stored = store.Find(tenant, *previous);
    if (stored == nullptr) return NotStored(store, "previous_response_id", "response", *previous);
    if (stored->cancel != nullptr) {
      return MustBe("previous_response_id", "a response that has ended",
                    json::DescribeString(*previous) + ", which is in progress");
    }
    items = ReadStored(*stored->input);
    Append(items, ReadStored(OutputOf(stored->object)));
  }
  std::unordered_set<std::string> calls;
  for (const Item& item : items) NoteCall(item, calls);
  for (std::size_t i = 0; i < input.items.size(); ++i) {
    Item& item = input.items[i];
    if (item.kind == ItemKind::kReference) {
      auto found = FindItem(store, tenant, item.id);
      const std::string field = "input[" + std::to_string(i) + "].id";
      if (!found) return NotStored(store, field, "item", item.id);
      item = *std::move(found);
    }
    if (item.id.empty()) item.id = NewId(item, suffix, i);
    if (item.kind == ItemKind::kCallOutput && !calls.contains(item.call_id)) {
      return MustBe("input[" + std::to_string(i) + "].call_id",
                    "the `call_id` of an earlier function_call",
                    json::DescribeString(item.call_id));
    }
    NoteCall(item, calls);
  }
  Append(items, std::move(input.items));
  return items;
}

std::string ChatTools(const std::vector<FunctionTool>& tools) {
  const auto append = [](std::string& out, const FunctionTool& tool) {
    out += "{\"type\":\"function\",\"function\":{";
    json::AppendMembers(out, "name", tool.name);
    if (tool.description) json::AppendMembers(out, "description", *tool.description);
    if (tool.parameters) json::AppendMembers(out, "parameters", *tool.parameters);
    if (tool.strict) json::AppendMembers(out, "strict", true);
    out += "}}";
  };
  std::string out;
  json::AppendArray(out, tools, append);
  return out;
}

ApiError AboutResponse(ApiError error) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"messages", "input"},
      {"max_completion_tokens", "max_output_tokens"},
      {"response_format", "text.format"},
      {"reasoning_effort", "reasoning.effort"},
  };
  for (const auto& [chat, own] : kNames) {
    if (error.field == chat) RenameField(error, std::string(own));
  }
  // The messages that the items became are not the client's.
  if (error.field.starts_with("messages[")) RenameField(error, "input");
  openai::RenameToolFields(error, "parameters");
  return error;
}

}  // namespace penstock::router::responses
