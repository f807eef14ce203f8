#include "router/api/djl/request.h"

#include <array>

#include "router/json/schema.h"

namespace penstock::router::djl {
namespace {

using json::MakeField;
using json::WithAlias;

constexpr auto kParameters = std::array{
    WithAlias(MakeField<&Parameters::max_new_tokens>("max_new_tokens", "a whole number"),
              "max_tokens"),
    WithAlias(MakeField<&Parameters::min_new_tokens>("min_new_tokens", "a whole number"),
              "min_length"),
    MakeField<&Parameters::decoding_strategy>("decoding_strategy", "a string"),
    MakeField<&Parameters::do_sample>("do_sample", "a boolean"),
    MakeField<&Parameters::temperature>("temperature", "a number"),
    MakeField<&Parameters::top_k>("top_k", "a whole number"),
    MakeField<&Parameters::top_p>("top_p", "a number"),
    MakeField<&Parameters::penalty_alpha>("penalty_alpha", "a number"),
    MakeField<&Parameters::typical_p>("typical_p", "a number"),
    MakeField<&Parameters::min_p>("min_p", "a number"),
    MakeField<&Parameters::repetition_penalty>("repetition_penalty", "a number"),
    MakeField<&Parameters::frequency_penalty>("frequency_penalty", "a number"),
    MakeField<&Parameters::presence_penalty>("presence_penalty", "a number"),
    MakeField<&Parameters::seed>("seed", "a whole number"),
    WithAlias(MakeField<&Parameters::stop_sequences>("stop_sequences", "a list of strings"),
              "stop"),
    MakeField<&Parameters::stop_token_ids>("stop_token_ids", "a list of whole numbers"),
    MakeField<&Parameters::include_stop_str_in_output>("include_stop_str_in_output", "a boolean"),
    WithAlias(MakeField<&Parameters::ignore_eos_token>("ignore_eos_token", "a boolean"),
              "ignore_eos"),
    MakeField<&Parameters::details>("details", "a boolean"),
    MakeField<&Parameters::return_full_text>("return_full_text", "a boolean"),
    MakeField<&Parameters::decoder_input_details>("decoder_input_details", "a boolean"),
    MakeField<&Parameters::top_n_tokens>("top_n_tokens", "a whole number"),
    MakeField<&Parameters::truncate>("truncate", "a whole number"),
    MakeField<&Parameters::output_formatter>("output_formatter", "a string"),
    MakeField<&Parameters::use_lru_kv_cache>("use_lru_kv_cache", "a boolean"),
    MakeField<&Parameters::n>("n", "a whole number"),
    MakeField<&Parameters::best_of>("best_of", "a whole number"),
    MakeField<&Parameters::num_beams>("num_beams", "a whole number"),
    MakeField<&Parameters::watermark>("watermark", "a boolean"),
};

constexpr auto kRequest = std::array{
    MakeField<&Request::inputs>("inputs", "a string or a list of strings", true),
    MakeField<&Request::parameters>("parameters", "an object"),
    MakeField<&Request::stream>("stream", "a boolean"),
    MakeField<&Request::cached_prompt>("cached_prompt", "a string"),
    MakeField<&Request::adapters>("adapters", "a string or a list of strings"),
    MakeField<&Request::adapter>("adapter", "a string"),
    MakeField<&Request::model_name>("model_name", "any value"),
};

}  // namespace

bool ReadValue(json::Reader& reader, Parameters& out, std::string_view expected) {
  if (!reader.NextIs('{')) return reader.FailNext(expected);
  return json::ReadObject<Parameters>(reader, kParameters, out, expected);
}

bool ReadValue(json::Reader& reader, Inputs& out, std::string_view expected) {
  out.list = reader.NextIs('[');
  if (out.list) return json::ReadValue(reader, out.texts, expected);
  return reader.ReadString(out.texts.emplace_back(), expected);
}

void AppendRequestSchemas(std::string& out) {
  json::AppendSchema<Parameters>(out, "DjlParameters", kParameters);
  auto request = kRequest;
  request[1].expected = "struct DjlParameters";
  json::AppendSchema<Request>(out, "DjlRequest", request);
}

Parsed<Request> ParseRequest(std::string_view body) {
  return Parse(body, {.limits = kPythonLimits, .strict = true}, kRequest, "an object");
}

}  // namespace penstock::router::djl
