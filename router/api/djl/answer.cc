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
  out += '{';
  json::AppendMembers(out, "id", token.id, "text", token.text,
                      style.tgi_compat ? "logprob" : "log_prob", token.logprob);
  if (style.tgi_compat) json::AppendMembers(out, "special", token.special);
  if (!style.tgi_compat && token.special) json::AppendMembers(out, "special_token", true);
  out += '}';
}

void AppendTokens(std::string& out, const AnswerStyle& style,
                  const std::vector<TokenInfo>& tokens) {
  for (const TokenInfo& token : tokens) {
    json::AppendComma(out);
    AppendToken(out, style, token);
  }
}

void AppendDetails(std::string& out, const AnswerStyle& style, std::size_t index,
                   const GenerationEnd& end) {
  json::AppendMembers(out, "finish_reason", tgi::FinishReasonName(end.reason), "generated_tokens",
                      end.generated_tokens);
  if (style.tgi_compat) json::AppendMembers(out, "seed", tgi::SeedOf(end));
  json::AppendMembers(out, "inputs", style.inputs[index]);
}

std::string FullText(const AnswerStyle& style, std::size_t index, const std::string& text) {
  return style.full_text ? style.inputs[index] + text : text;
}

}  // namespace penstock::router::djl
