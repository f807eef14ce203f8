#include "router/dispatch/shown_request.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace penstock::router {
namespace {

constexpr std::uint32_t kAllocation = 1024;  // the most tokens that TGI asks its shards for

// The text of the last message of a chat; empty if it has none.
std::string LastText(const std::string& messages_json) {
  boost::system::error_code error;
  const auto messages = boost::json::parse(messages_json, error);
  if (error || !messages.is_array() || messages.get_array().empty()) return "";
  const auto* message = messages.get_array().back().if_object();
  const auto* content = message == nullptr ? nullptr : message->if_contains("content");
  return content != nullptr && content->is_string() ? std::string(content->get_string()) : "";
}

}  // namespace

std::string ShownRequest(const GenerationRequest& request, const GrammarSpec& grammar,
                         std::uint32_t max_new_tokens, std::uint32_t max_input_tokens) {
  boost::json::object shown;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) shown["text"] = *text;
  if (const auto* chat = std::get_if<ChatInput>(&request.prompt)) {
    shown["text"] = LastText(chat->messages_json);
  }
  shown["do_sample"] = request.asked_sampling;
  if (request.seed) shown["seed"] = *request.seed;
  shown["watermark"] = request.sampling.watermark;
  shown["grammar_type"] = static_cast<int>(grammar.kind);
  shown["grammar"] = grammar.source;
  shown["max_new_tokens"] = std::min(max_new_tokens, kAllocation);
  shown["stop"] = boost::json::array(request.stop.begin(), request.stop.end());
  shown["truncate"] = request.truncate.value_or(max_input_tokens);
  shown["add_special_tokens"] = request.add_special_tokens;
  if (request.adapter_id) shown["adapter_id"] = *request.adapter_id;
  return boost::json::serialize(shown);
}

}  // namespace penstock::router
