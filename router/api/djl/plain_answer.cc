#include <utility>

#include "router/api/djl/answer.h"
#include "router/api/djl/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::djl {
namespace {

// One object, or a list of them in the order of the inputs. An input that failed has its error in
// its place.
class PlainAnswer final : public AnswerWriter {
 public:
  PlainAnswer(std::shared_ptr<Exchange> exchange, AnswerStyle style)
      : exchange_(std::move(exchange)), style_(std::move(style)), parts_(style_.inputs.size()) {}

  void Start(std::size_t index, const GenerationStart& start) override {
    if (style_.prefill) AppendTokens(parts_[index].prefill, style_, start.prompt);
  }

  void Token(std::size_t index, GenerationToken token) override {
    if (!style_.details) return;
    Part& part = parts_[index];
    AppendTokens(part.tokens, style_, {token.token});
    AppendTokens(part.top_tokens, style_, token.top);
  }

  void End(std::size_t index, GenerationEnd end) override { parts_[index].end = std::move(end); }

  bool FailedAlone(std::size_t index, const ApiError& error) override {
    if (!FailsAlone(style_, error)) return false;
    parts_[index].error = Errors().Body(error);
    return true;
  }

  void AllEnded(Time) override {
    const bool array = style_.list || style_.tgi_compat;
    std::string body = array ? "[" : "";
    for (std::size_t i = 0; i < parts_.size(); ++i) AppendPart(body, i);
    if (array) body += ']';
    exchange_->Respond({200, "application/json", {}, std::move(body)});
  }

  void Failed(const ApiError& error) override { exchange_->Respond(Errors().Response(error)); }

 private:
  struct Part {
    std::string prefill;  // elements of the lists of details
    std::string tokens;
    std::string top_tokens;
    GenerationEnd end;
    std::string error;
  };

  void AppendPart(std::string& body, std::size_t index) const {
    const Part& part = parts_[index];
    json::AppendComma(body);
    if (!part.error.empty()) {
      body += part.error;
      return;
    }
    body += '{';
    json::AppendMembers(body, "generated_text", FullText(style_, index, part.end.text));
    if (style_.details || style_.prefill) {
      body += ",\"details\":{";
      AppendDetails(body, style_, index, part.end);
      body.append(",\"tokens\":[").append(part.tokens).append("]");
      if (style_.prefill) body.append(",\"prefill\":[").append(part.prefill).append("]");
      if (!part.top_tokens.empty()) {
        body.append(",\"top_tokens\":[").append(part.top_tokens).append("]");
      }
      body += '}';
    }
    body += '}';
  }

  std::shared_ptr<Exchange> exchange_;
  AnswerStyle style_;
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakePlainAnswer(std::shared_ptr<Exchange> exchange,
                                              AnswerStyle style) {
  return std::make_unique<PlainAnswer>(std::move(exchange), std::move(style));
}

}  // namespace penstock::router::djl
