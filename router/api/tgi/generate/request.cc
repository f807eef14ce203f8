#include "router/api/tgi/generate/request.h"

#include <array>

#include "router/json/schema.h"

namespace penstock::router::tgi {
namespace {

using json::MakeField;

constexpr auto kParameters = std::array{
    MakeField<&Parameters::best_of>("best_of", "usize"),
    MakeField<&Parameters::temperature>("temperature", "f32"),
    MakeField<&Parameters::repetition_penalty>("repetition_penalty", "f32"),
    MakeField<&Parameters::frequency_penalty>("frequency_penalty", "f32"),
    MakeField<&Parameters::top_k>("top_k", "i32"),
    MakeField<&Parameters::top_p>("top_p", "f32"),
    MakeField<&Parameters::typical_p>("typical_p", "f32"),
    MakeField<&Parameters::do_sample>("do_sample", "a boolean"),
    MakeField<&Parameters::max_new_tokens>("max_new_tokens", "u32"),
    MakeField<&Parameters::return_full_text>("return_full_text", "a boolean"),
    MakeField<&Parameters::stop>("stop", "a sequence"),
    MakeField<&Parameters::truncate>("truncate", "usize"),
    MakeField<&Parameters::watermark>("watermark", "a boolean"),
    MakeField<&Parameters::details>("details", "a boolean"),
    MakeField<&Parameters::decoder_input_details>("decoder_input_details", "a boolean"),
    MakeField<&Parameters::seed>("seed", "u64"),
    MakeField<&Parameters::top_n_tokens>("top_n_tokens", "u32"),
    MakeField<&Parameters::grammar>("grammar", "adjacently tagged enum GrammarType"),
    MakeField<&Parameters::adapter_id>("adapter_id", "a string"),
    MakeField<&Parameters::penalty_alpha>("penalty_alpha", "f32"),
};

constexpr auto kRequest = std::array{
    MakeField<&Request::inputs>("inputs", "a string", true),
    MakeField<&Request::parameters>("parameters", "struct GenerateParameters"),
};

constexpr auto kCompatRequest = std::array{
    MakeField<&Request::inputs>("inputs", "a string", true),
    MakeField<&Request::parameters>("parameters", "struct GenerateParameters"),
    MakeField<&Request::stream>("stream", "a boolean"),
};

}  // namespace

bool ReadValue(json::Reader& reader, ExtensionNumber& out, std::string_view expected) {
  out = {};
  if (reader.TakeNull()) return true;
  out.given = true;
  for (const char c : {'"', '[', '{', 't', 'f'}) {
    if (reader.NextIs(c)) return reader.Skip();
  }
  json::Number number;
  if (!reader.ReadNumber(number, expected)) return false;
  out.value = number.value;
  return true;
}

bool ReadValue(json::Reader& reader, Parameters& out, std::string_view expected) {
  out = Parameters{};
  return json::ReadObject<Parameters>(reader, kParameters, out, expected);
}

void AppendGenerateSchemas(std::string& out) {
  json::AppendSchema<Parameters>(out, "GenerateParameters", kParameters);
  json::AppendSchema<Request>(out, "GenerateRequest", kRequest);
  json::AppendSchema<Request>(out, "CompatGenerateRequest", kCompatRequest);
  out += R"(,"GrammarType":{"type":"object","required":["type","value"],"properties":{"type":{)"
         R"("type":"string","enum":["json","json_object","regex","json_schema"]},"value":{}}})";
}

Parsed<Request> ParseRequest(std::string_view body, bool compat) {
  const BodyRules rules = {.limits = kLimits};
  return compat ? Parse(body, rules, kCompatRequest, "struct CompatGenerateRequest")
                : Parse(body, rules, kRequest, "struct GenerateRequest");
}

}  // namespace penstock::router::tgi
