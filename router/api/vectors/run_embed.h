// Runs one request for vectors: its checks, a permit for each text, the engine, the counts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/context.h"
#include "router/api/openai/request.h"
#include "router/api/vectors/request.h"
#include "router/http/application.h"

namespace penstock::router::vectors {

struct EmbedRun {
  std::string_view field;  // of the body: what holds the texts
  std::string model;       // as the client named it
  EmbedJob job;
};

// The body of the answer.
using MakeBody = std::function<std::string(const Embedded& embedded)>;

// Checks the model and the number of texts, then asks the engine. Answers with a body or an error.
void RunEmbed(ApiContext& context, const RequestHead& head, EmbedRun run,
              std::shared_ptr<Exchange> exchange, MakeBody make_body);

void Refuse(ApiContext& context, Exchange& exchange, ApiError error);

std::vector<EmbedInput> InputsOf(openai::Prompts prompts);
EmbedJob JobOf(const Common& request, std::vector<EmbedInput> inputs);
// truncate_prompt_tokens must be -1 or above 0.
std::optional<ApiError> CheckTruncation(const Common& request);

// The tokens of an answer, and what all forms of answers begin with.
struct AnswerHead {
  std::string id;
  std::string model;
  std::int64_t created = 0;
};
AnswerHead MakeHead(const ApiContext& context, std::string_view prefix, const RequestHead& head);
void AppendUsage(std::string& out, const Embedded& embedded);

// The first numbers of an embedding, as a unit vector if `unit` is set.
std::vector<float> Shortened(std::vector<float> vector, std::size_t size, bool unit);
float Cosine(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace penstock::router::vectors
