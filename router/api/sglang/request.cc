#include "router/api/sglang/request.h"

#include <array>
#include <utility>

#include "router/json/schema.h"

namespace penstock::router::sglang {
namespace {

using json::MakeField;

constexpr auto kSampling = std::array{
    MakeField<&Sampling::max_new_tokens>("max_new_tokens", "an integer that is not negative"),
    MakeField<&Sampling::min_new_tokens>("min_new_tokens", "an integer that is not negative"),
    MakeField<&Sampling::n>("n", "a positive integer"),
    MakeField<&Sampling::stop>("stop", "a string or an array of strings"),
    MakeField<&Sampling::stop_token_ids>("stop_token_ids", "an array of token ids"),
    MakeField<&Sampling::temperature>("temperature", "a number"),
    MakeField<&Sampling::top_p>("top_p", "a number"),
    MakeField<&Sampling::top_k>("top_k", "an integer"),
    MakeField<&Sampling::min_p>("min_p", "a number"),
    MakeField<&Sampling::frequency_penalty>("frequency_penalty", "a number"),
    MakeField<&Sampling::presence_penalty>("presence_penalty", "a number"),
    MakeField<&Sampling::repetition_penalty>("repetition_penalty", "a number"),
    MakeField<&Sampling::ignore_eos>("ignore_eos", "a boolean"),
    MakeField<&Sampling::no_stop_trim>("no_stop_trim", "a boolean"),
    MakeField<&Sampling::sampling_seed>("sampling_seed", "an integer"),
    MakeField<&Sampling::logit_bias>("logit_bias", "an object of token ids and biases"),
    MakeField<&Sampling::regex>("regex", "a string"),
    MakeField<&Sampling::json_schema>("json_schema", "a string or an object"),
    MakeField<&Sampling::ebnf>("ebnf", "a string"),
    MakeField<&Sampling::structural_tag>("structural_tag", "a string or an object"),
    MakeField<&Sampling::stop_regex>("stop_regex", "a string or an array of strings"),
    MakeField<&Sampling::beam_width>("beam_width", "a positive integer"),
    json::WithoutEffect<Sampling>("skip_special_tokens"),
    json::WithoutEffect<Sampling>("spaces_between_special_tokens"),
    json::WithoutEffect<Sampling>("stream_interval"),
    json::WithoutEffect<Sampling>("custom_params"),
};

constexpr std::string_view kInteger = "an integer or an array of integers";

constexpr auto kRequest = std::array{
    MakeField<&Request::text>("text", "a string or an array of strings"),
    MakeField<&Request::input_ids>("input_ids", "an array of token ids or of such arrays"),
    MakeField<&Request::sampling_params>("sampling_params", "an object or an array of objects"),
    MakeField<&Request::rid>("rid", "a string or an array of strings"),
    MakeField<&Request::return_logprob>("return_logprob", "a boolean or an array of booleans"),
    MakeField<&Request::logprob_start_len>("logprob_start_len", kInteger),
    MakeField<&Request::top_logprobs_num>("top_logprobs_num", kInteger),
    MakeField<&Request::lora_path>("lora_path", "a string or an array of strings"),
    MakeField<&Request::return_text_in_logprobs>("return_text_in_logprobs", "a boolean"),
    MakeField<&Request::stream>("stream", "a boolean"),
    MakeField<&Request::input_embeds>("input_embeds", "an array"),
    MakeField<&Request::image_data>("image_data", "any value"),
    MakeField<&Request::video_data>("video_data", "any value"),
    MakeField<&Request::audio_data>("audio_data", "any value"),
    MakeField<&Request::token_ids_logprob>("token_ids_logprob", "an array"),
    MakeField<&Request::session_params>("session_params", "an object"),
    MakeField<&Request::custom_logit_processor>("custom_logit_processor", "a string"),
    MakeField<&Request::return_hidden_states>("return_hidden_states", "a boolean"),
    json::WithoutEffect<Request>("log_metrics"),
    json::WithoutEffect<Request>("modalities"),
    json::WithoutEffect<Request>("session_id"),
    json::WithoutEffect<Request>("conversation_id"),
    json::WithoutEffect<Request>("routing_key"),
    json::WithoutEffect<Request>("background"),
};

constexpr auto kConcatenate = std::array{
    MakeField<&ConcatenateRequest::src_rids>("src_rids", "an array of strings", true),
    MakeField<&ConcatenateRequest::dst_rid>("dst_rid", "a string", true),
};

}  // namespace

bool ReadValue(json::Reader& reader, Sampling& out, std::string_view expected) {
  return json::ReadStrictObject<Sampling>(reader, kSampling, out, expected);
}

bool ReadValue(json::Reader& reader, TokenPrompts& out, std::string_view expected) {
  if (!reader.EnterArray(expected)) return false;
  std::vector<TokenId> ids;
  while (reader.NextElement()) {
    if (reader.NextIs('[') && ids.empty()) {
      out.listed = true;
      if (!json::ReadValue(reader, out.list.emplace_back(), "an array of token ids")) return false;
    } else if (out.listed) {
      return reader.FailNext("an array of token ids");
    } else if (!json::ReadValue(reader, ids.emplace_back(), "a token id")) {
      return false;
    }
  }
  if (!out.listed) out.list.push_back(std::move(ids));
  return reader.ok();
}

bool IsGenerateBody(std::string_view body) {
  json::Reader reader(body);
  std::string key;
  bool own = false;
  if (!reader.NextIs('{') || !reader.EnterObject("an object")) return false;
  while (reader.NextKey(key)) {
    if (key == "inputs") return false;
    own = own || key == "text" || key == "input_ids" || key == "input_embeds";
    if (!reader.Colon() || !reader.Skip()) break;
  }
  return own;
}

void AppendRequestSchemas(std::string& out) {
  json::AppendSchema<Sampling>(out, "SglangSamplingParams", kSampling);
  json::AppendSchema<Request>(out, "SglangGenerateRequest", kRequest);
  json::AppendSchema<ConcatenateRequest>(out, "SglangConcatenateRequest", kConcatenate);
}

Parsed<Request> ParseGenerate(std::string_view body) {
  return Parse(body, openai::kRules, kRequest, "an object");
}

Parsed<ConcatenateRequest> ParseConcatenate(std::string_view body) {
  return Parse(body, openai::kRules, kConcatenate, "an object");
}

}  // namespace penstock::router::sglang
