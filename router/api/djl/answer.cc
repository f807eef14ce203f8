#include "router/api/djl/answer.h"

#include <utility>

#include "router/api/tgi/generate/tokens.h"
#include "router/json/writer.h"

namespace penstock::router::djl {

AnswerStyle StyleOf(const DjlOptions& options, const Request& request, Formatter formatter) {
  AnswerStyle style;
  style.formatter = formatter;
  style.list = request.inputs.list;
  style.tgi_compat = options.tgi_compat;
  style.details = request.parameters.details.value_or(options.tgi_compat);
  style.prefill = request.parameters.decoder_input_details;
  style.full_text = request.parameters.return_full_text;
  style.inputs = request.inputs.texts;
  return style;
}

std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style) {
  return style.formatter == Formatter::kJson
             ? MakePlainAnswer(std::move(exchange), std::move(style))
             : MakeStreamAnswer(std::move(exchange), std::move(style));
}

bool FailsAlone(const AnswerStyle& style, const ApiError& error) {
  if (!style.list || style.inputs.size() == 1) return false;
  // A length error depends on the prompt: another prompt of the list may fit.
  return error.kind != ApiErrorKind::kValidation || error.field.empty() || error.field == "inputs";
}

void AppendToken(std::string& out, const AnswerStyle& style, const TokenInfo& token) {
  out += "{\"id\":";
  json::AppendInteger(out, token.id);
  out += ",\"text\":";
  json::AppendString(out, token.text);
  out += style.tgi_compat ? ",\"logprob\":" : ",\"log_prob\":";
  if (token.logprob) {
    json::AppendFloat(out, *token.logprob);
  } else {
    out += "null";
  }
  if (style.tgi_compat) {
    out += ",\"special\":";
    json::AppendBool(out, token.special);
  } else if (token.special) {
    out += ",\"special_token\":true";
  }
  out += '}';
}

void AppendDetails(std::string& out, const AnswerStyle& style, std::size_t index,
                   const GenerationEnd& end) {
  out += "\"finish_reason\":";
  json::AppendString(out, tgi::FinishReasonName(end.reason));
  out += ",\"generated_tokens\":";
  json::AppendInteger(out, end.generated_tokens);
  if (style.tgi_compat) {
    out += ",\"seed\":";
    tgi::AppendSeed(out, end);
  }
  out += ",\"inputs\":";
  json::AppendString(out, style.inputs[index]);
}

std::string FullText(const AnswerStyle& style, std::size_t index, const std::string& text) {
  return style.full_text ? style.inputs[index] + text : text;
}

}  // namespace penstock::router::djl
