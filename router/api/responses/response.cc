#include "router/api/responses/response.h"
#include "router/api/adapters.h"

#include <atomic>
#include <ctime>

#include "router/json/writer.h"

namespace penstock::router::responses {
namespace {

constexpr std::string_view kPrefix = "resp_";

void AppendTool(std::string& out, const FunctionTool& tool) {
  json::AppendObject(out, "type", "function", "name", tool.name, "description", tool.description,
                     "parameters", tool.parameters, "strict", tool.strict);
}

std::string FormatText(const TextFormat& format) {
  if (!format.schema) return json::ObjectText("type", format.type);
  return json::ObjectText("type", format.type, "name", format.name, "schema", format.schema,
                          "strict", format.strict);
}

std::string Echo(const Request& request, std::string_view served_choice) {
  std::string out = "{";
  json::AppendMembers(
      out, "background", false, "instructions",
      request.instructions.empty() ? std::optional<std::string_view>() : request.instructions,
      "max_output_tokens", request.max_completion_tokens, "metadata",
      request.metadata.value_or(json::Raw{"{}"}), "parallel_tool_calls",
      request.parallel_tool_calls, "previous_response_id", request.previous_response_id,
      "reasoning", json::Object("effort", request.reasoning.effort, "summary", nullptr), "store",
      request.store, "temperature", request.temperature.value_or(1.0f), "text",
      json::Object("format", json::Raw{FormatText(request.text.format)}), "tool_choice",
      json::Raw{served_choice}, "tools", json::Array(request.function_tools.functions, AppendTool),
      "top_logprobs", request.top_logprobs.value_or(0), "top_p", request.top_p.value_or(1.0f),
      "truncation", "disabled");
  return out.substr(1);
}

}  // namespace

ResponseFacts MakeFacts(const ApiContext& context, const Request& request,
                        const std::string& request_id) {
  // Clients may send the same X-Request-Id twice; the number tells the responses apart.
  static std::atomic<std::uint64_t> next{0};
  ResponseFacts facts;
  facts.suffix = request_id + "-" + std::to_string(++next);
  facts.id = std::string(kPrefix) + facts.suffix;
  facts.model = ShownModel(context.engine, request.model);
  facts.created = static_cast<std::int64_t>(std::time(nullptr));
  facts.echo = Echo(request, request.tool_choice ? request.tool_choice->text : R"("auto")");
  return facts;
}

std::string ResponseText(const ResponseFacts& facts, const ResponseState& state) {
  std::string incomplete = "null";
  if (state.status == "incomplete") incomplete = R"({"reason":"max_output_tokens"})";
  std::string out = "{";
  json::AppendMembers(out, "id", facts.id, "object", "response", "created_at", facts.created,
                      "completed_at", state.completed, "status", state.status, "error",
                      json::Raw{state.error}, "incomplete_details", json::Raw{incomplete}, "model",
                      facts.model, "output", json::Raw{state.output});
  out.append(",").append(facts.echo);
  if (state.usage) {
    const Usage& usage = *state.usage;
    json::AppendMembers(
        out, "usage",
        json::Object("input_tokens", usage.input, "input_tokens_details",
                     json::Object("cached_tokens", usage.cached, "cache_write_tokens", 0),
                     "output_tokens", usage.output, "output_tokens_details",
                     json::Object("reasoning_tokens", usage.reasoning), "total_tokens",
                     usage.input + usage.output));
  }
  out += '}';
  return out;
}

std::string ResponseOfItem(std::string_view item_id) {
  const std::size_t begin = item_id.find('_');
  const std::size_t end = item_id.rfind('-');
  if (begin == item_id.npos || end == item_id.npos || end < begin) return "";
  return std::string(kPrefix) + std::string(item_id.substr(begin + 1, end - begin - 1));
}

}  // namespace penstock::router::responses
