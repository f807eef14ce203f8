#include "router/api/vectors/request.h"

#include <array>
#include <utility>

#include "router/json/schema.h"

namespace penstock::router::vectors {

namespace {

using json::MakeFieldOf;

constexpr std::string_view kInputs = "a string, an array of strings or of token ids";
constexpr std::string_view kTexts = "a string or an array of strings";

template <class T>
constexpr auto kCommon = std::array{
    MakeFieldOf<T, &Common::model>("model", "a string"),
    MakeFieldOf<T, &Common::truncate_prompt_tokens>("truncate_prompt_tokens", "an integer"),
    MakeFieldOf<T, &Common::add_special_tokens>("add_special_tokens", "a boolean"),
    json::WithoutEffect<T>("user"),
    json::WithoutEffect<T>("priority"),
};

constexpr auto kEmbeddings = json::Join(
    kCommon<EmbeddingsRequest>,
    std::array{
        MakeFieldOf<EmbeddingsRequest, &EmbeddingsRequest::input>("input", kInputs, true),
        MakeFieldOf<EmbeddingsRequest, &EmbeddingsRequest::encoding_format>("encoding_format",
                                                                            "a string"),
        MakeFieldOf<EmbeddingsRequest, &EmbeddingsRequest::dimensions>("dimensions",
                                                                       "a positive integer"),
        MakeFieldOf<EmbeddingsRequest, &EmbeddingsRequest::normalize>("normalize", "a boolean"),
        MakeFieldOf<EmbeddingsRequest, &EmbeddingsRequest::prompt_name>("prompt_name", "a string"),
    });

constexpr auto kEmbed = std::array{
    MakeFieldOf<EmbedRequest, &EmbedRequest::inputs>("inputs", kInputs, true),
    MakeFieldOf<EmbedRequest, &EmbedRequest::truncate>("truncate", "a boolean"),
    MakeFieldOf<EmbedRequest, &EmbedRequest::normalize>("normalize", "a boolean"),
    MakeFieldOf<EmbedRequest, &EmbedRequest::dimensions>("dimensions", "a positive integer"),
    MakeFieldOf<EmbedRequest, &EmbedRequest::prompt_name>("prompt_name", "a string"),
};

constexpr auto kRerank =
    json::Join(kCommon<RerankRequest>,
               std::array{
                   MakeFieldOf<RerankRequest, &RerankRequest::query>("query", "a string", true),
                   MakeFieldOf<RerankRequest, &RerankRequest::documents>("documents", kTexts, true),
                   MakeFieldOf<RerankRequest, &RerankRequest::top_n>("top_n", "an integer"),
                   MakeFieldOf<RerankRequest, &RerankRequest::return_documents>("return_documents",
                                                                                "a boolean"),
               });

constexpr auto kScore =
    json::Join(kCommon<ScoreRequest>,
               std::array{
                   MakeFieldOf<ScoreRequest, &ScoreRequest::text_1>("text_1", kTexts, true),
                   MakeFieldOf<ScoreRequest, &ScoreRequest::text_2>("text_2", kTexts, true),
               });

struct TextObject {
  std::string text;
};
constexpr auto kTextObject =
    std::array{MakeFieldOf<TextObject, &TextObject::text>("text", "a string", true)};

// A text, or an object that holds one.
bool ReadText(json::Reader& reader, std::string& out) {
  if (!reader.NextIs('{')) return reader.ReadString(out, "a string or an object with `text`");
  TextObject object;
  if (!json::ReadObject<TextObject>(reader, kTextObject, object, "an object")) return false;
  out = std::move(object.text);
  return true;
}

}  // namespace

bool ReadValue(json::Reader& reader, Texts& out, std::string_view expected) {
  if (!reader.NextIs('[')) {
    if (!reader.NextIs('"') && !reader.NextIs('{')) return reader.FailNext(expected);
    return ReadText(reader, out.list.emplace_back());
  }
  if (!reader.EnterArray(expected)) return false;
  while (reader.NextElement()) {
    if (!ReadText(reader, out.list.emplace_back())) return false;
  }
  return reader.ok();
}

void AppendRequestSchemas(std::string& out) {
  json::AppendSchema<EmbeddingsRequest>(out, "EmbeddingsRequest", kEmbeddings);
  json::AppendSchema<EmbedRequest>(out, "EmbedRequest", kEmbed);
  json::AppendSchema<RerankRequest>(out, "RerankRequest", kRerank);
  json::AppendSchema<ScoreRequest>(out, "ScoreRequest", kScore);
}

Parsed<EmbeddingsRequest> ParseEmbeddings(std::string_view body) {
  return Parse(body, openai::kRules, kEmbeddings, "an object");
}
Parsed<EmbedRequest> ParseEmbed(std::string_view body) {
  return Parse(body, openai::kRules, kEmbed, "an object");
}
Parsed<RerankRequest> ParseRerank(std::string_view body) {
  return Parse(body, openai::kRules, kRerank, "an object");
}
Parsed<ScoreRequest> ParseScore(std::string_view body) {
  return Parse(body, openai::kRules, kScore, "an object");
}

}  // namespace penstock::router::vectors
