// What Ollama's clients ask about the model.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/answer/format.h"
#include "router/api/body.h"
#include "router/api/ollama/dialect.h"
#include "router/api/ollama/request.h"
#include "router/api/ollama/translate.h"
#include "router/api/openai/lower.h"
#include "router/api/run.h"
#include "router/api/utc_time.h"
#include "router/json/writer.h"

namespace penstock::router::ollama {
namespace {

// The version of Ollama whose interface this is: clients refuse older ones.
constexpr std::string_view kVersion = "0.13.5";
// The model stays loaded.
constexpr std::string_view kNever = "9999-12-31T23:59:59Z";

std::string DetailsText(const ModelFacts& facts) {
  return json::ObjectText("parent_model", "", "format", "safetensors", "family", "",
                          "parameter_size", "", "quantization_level", facts.dtype);
}

// The members of the model in each list. Sizes are not known here.
std::string ModelMembers(const ModelFacts& facts, const std::string& name) {
  std::string out;
  json::AppendMembers(out, "name", name, "model", name, "size", 0, "digest", facts.model_sha,
                      "details", json::Raw{DetailsText(facts)});
  return out;
}

// A list of the model and its adapters; `rest` adds members to each.
template <class Rest>
std::string ListOf(const ApiContext& context, const Rest& rest) {
  const ModelFacts facts = context.engine.Facts();
  std::vector<std::string> names = {facts.served_name};
  for (const AdapterInfo& adapter : context.engine.Adapters()) names.push_back(adapter.name);
  std::string out = "{\"models\":[";
  for (const std::string& name : names) {
    std::string members = ModelMembers(facts, name);
    rest(members, facts);
    out += (name == names.front() ? "{" : ",{") + members + "}";
  }
  return out + "]}";
}

// What the model's chat template and format offer.
std::string CapabilitiesText(const ApiContext& context, const ModelFacts& facts) {
  const answer::Format& format = *context.options.answer_format;
  std::string out = "[\"completion\"";
  if (facts.has_chat_template && format.header != nullptr) out += ",\"tools\"";
  if (facts.has_chat_template && !format.reasoning.empty()) out += ",\"thinking\"";
  return out + "]";
}

}  // namespace

void Tags(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(JsonResponse(ListOf(context, [&](std::string& members, const ModelFacts&) {
    json::AppendMembers(members, "modified_at", UtcTime(context.started));
  })));
}

void Running(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(JsonResponse(ListOf(context, [](std::string& members, const ModelFacts& facts) {
    json::AppendMembers(members, "expires_at", kNever, "size_vram", 0, "context_length",
                        facts.max_total_tokens);
  })));
}

void Version(ApiContext&, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(JsonResponse(json::ObjectText("version", kVersion)));
}

void Show(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<ShowRequest> parsed = ParseShow(http.body);
  if (!Accept(context, "/api/show", "ollama", Errors(), parsed, *exchange)) return;
  const ModelFacts facts = context.engine.Facts();
  const std::string_view model = WithoutTag(parsed.request.model);
  if (const auto error = openai::CheckModel(context, std::string(model))) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  exchange->Respond(JsonResponse(json::ObjectText(
      "modelfile", "", "parameters", "", "template", "", "details", json::Raw{DetailsText(facts)},
      "model_info",
      json::Object("general.architecture", "llm", "general.basename", facts.served_name,
                   "llm.context_length", facts.max_total_tokens),
      "capabilities", json::Raw{CapabilitiesText(context, facts)}, "modified_at",
      UtcTime(context.started))));
}

}  // namespace penstock::router::ollama
