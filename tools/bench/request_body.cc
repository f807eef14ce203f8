#include "tools/bench/request_body.h"

#include <boost/json.hpp>

namespace penstock::bench {
namespace {

namespace json = boost::json;

std::optional<std::uint32_t> Count(const json::value& value, std::string_view pointer) {
  boost::system::error_code error;
  const json::value* found = value.find_pointer(pointer, error);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->to_number<std::uint32_t>();
}

StreamEvent ReadTgi(const json::value& value) {
  StreamEvent event;
  event.is_token = value.as_object().contains("token");
  event.total_tokens = Count(value, "/details/generated_tokens");
  event.is_done = event.total_tokens.has_value();
  return event;
}

StreamEvent ReadOpenAi(const json::value& value) {
  StreamEvent event;
  event.total_tokens = Count(value, "/usage/completion_tokens");
  boost::system::error_code error;
  for (std::string_view pointer : {"/choices/0/delta/content", "/choices/0/text"}) {
    const json::value* text = value.find_pointer(pointer, error);
    event.is_token |= text != nullptr && text->is_string() && !text->as_string().empty();
  }
  return event;
}

}  // namespace

std::string Target(Api api) {
  switch (api) {
    case Api::kTgi:
      return "/generate_stream";
    case Api::kOpenAiChat:
      return "/v1/chat/completions";
    case Api::kOpenAiCompletions:
      return "/v1/completions";
  }
  return "/";
}

std::string RequestBody(const LoadOptions& config, std::string_view prompt) {
  json::object body;
  if (config.api == Api::kTgi) {
    json::object parameters = {{"max_new_tokens", config.max_new_tokens}, {"details", true}};
    if (config.temperature) {
      parameters["do_sample"] = true;
      parameters["temperature"] = *config.temperature;
    }
    body = {{"inputs", prompt}, {"parameters", parameters}};
    return json::serialize(body);
  }
  body = {{"model", config.model},
          {"stream", true},
          {"stream_options", {{"include_usage", true}}},
          {"max_tokens", config.max_new_tokens},
          {"temperature", config.temperature.value_or(0.0)}};
  if (config.api == Api::kOpenAiChat) {
    body["messages"] = json::array{json::object{{"role", "user"}, {"content", prompt}}};
  } else {
    body["prompt"] = prompt;
  }
  return json::serialize(body);
}

std::optional<std::string> FirstModel(std::string_view body) {
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  const json::value* id = error ? nullptr : value.find_pointer("/data/0/id", error);
  if (id == nullptr || !id->is_string()) return std::nullopt;
  return std::string(id->as_string());
}

StreamEvent ReadEvent(Api api, std::string_view payload) {
  if (payload == "[DONE]") return {.is_done = true};
  boost::system::error_code error;
  const json::value value = json::parse(payload, error);
  if (error || !value.is_object() || value.as_object().contains("error")) {
    return {.is_error = true};
  }
  return api == Api::kTgi ? ReadTgi(value) : ReadOpenAi(value);
}

}  // namespace penstock::bench
