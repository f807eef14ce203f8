// /rerank, /score and /classify. A classifier with one class scores a pair of texts itself; of an
// embedding model the score is the cosine of the two embeddings.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "router/api/openai/dialect.h"
#include "router/api/vectors/dialect.h"
#include "router/api/vectors/run_embed.h"
#include "router/json/writer.h"

namespace penstock::router::vectors {
namespace {

float Sigmoid(float x) { return static_cast<float>(1.0 / (1.0 + std::exp(-double{x}))); }

std::vector<float> Probabilities(const VectorFacts& facts, const std::vector<float>& scores) {
  std::vector<float> out;
  if (facts.sigmoid) {
    for (const float score : scores) out.push_back(Sigmoid(score));
    return out;
  }
  const float largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(double{score} - largest);
  for (const float score : scores) {
    out.push_back(static_cast<float>(std::exp(double{score} - largest) / sum));
  }
  return out;
}

// The texts of which pairs are scored. One left text belongs to all right ones.
struct Pairs {
  std::vector<std::string> left;
  std::vector<std::string> right;

  std::vector<EmbedInput> Inputs(const VectorFacts& facts) const {
    std::vector<EmbedInput> inputs;
    if (facts.classifies) {
      for (std::size_t i = 0; i < right.size(); ++i) inputs.push_back({left[LeftOf(i)], right[i]});
      return inputs;
    }
    for (const auto* texts : {&left, &right}) {
      for (const std::string& text : *texts) inputs.push_back({text});
    }
    return inputs;
  }

  std::vector<float> Scores(const VectorFacts& facts, const Embedded& embedded) const {
    std::vector<float> scores;
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (facts.classifies) {
        const float score = embedded.vectors[i].front();
        scores.push_back(facts.plain_scores ? score : Sigmoid(score));
      } else {
        scores.push_back(Cosine(embedded.vectors[LeftOf(i)], embedded.vectors[left.size() + i]));
      }
    }
    return scores;
  }

 private:
  std::size_t LeftOf(std::size_t i) const { return left.size() == 1 ? 0 : i; }
};

std::optional<ApiError> CheckScorer(const ModelFacts& facts) {
  if (!facts.vectors || !facts.vectors->classifies || facts.vectors->outputs == 1) {
    return std::nullopt;
  }
  return Unsupported("model", "has " + std::to_string(facts.vectors->outputs) +
                                  " classes and so no score of a pair of texts");
}

std::string RerankBody(const AnswerHead& head, const Pairs& pairs, std::size_t top_n, bool texts,
                       const std::vector<float>& scores, const Embedded& embedded) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(top_n, order.size()));
  std::string body = "{";
  json::AppendMembers(body, "id", head.id, "model", head.model);
  AppendUsage(body, embedded);
  body += ",\"results\":";
  json::AppendArray(body, order, [&](std::string& out, std::size_t index) {
    out += "{";
    json::AppendMembers(out, "index", index);
    if (texts) json::AppendMembers(out, "document", json::Object("text", pairs.right[index]));
    json::AppendMembers(out, "relevance_score", scores[index]);
    out += "}";
  });
  return body + "}";
}

std::string ListBody(const AnswerHead& head, const std::string& data, const Embedded& embedded) {
  std::string body = "{";
  json::AppendMembers(body, "id", head.id, "object", "list", "created", head.created, "model",
                      head.model, "data", json::Raw{data});
  AppendUsage(body, embedded);
  return body + "}";
}

std::string ScoreBody(const AnswerHead& head, const std::vector<float>& scores,
                      const Embedded& embedded) {
  std::string data;
  std::size_t index = 0;
  json::AppendArray(data, scores, [&index](std::string& out, float score) {
    out += json::ObjectText("index", index++, "object", "score", "score", score);
  });
  return ListBody(head, data, embedded);
}

std::string ClassesBody(const AnswerHead& head, const VectorFacts& facts,
                        const Embedded& embedded) {
  std::string data;
  std::size_t index = 0;
  json::AppendArray(data, embedded.vectors, [&](std::string& out, const auto& scores) {
    const std::vector<float> probabilities = Probabilities(facts, scores);
    const auto best = std::ranges::max_element(probabilities) - probabilities.begin();
    std::string numbers;
    json::AppendArray(numbers, probabilities,
                      [](std::string& to, float number) { json::AppendFloat(to, number); });
    out += json::ObjectText("index", index++, "label", facts.labels[static_cast<std::size_t>(best)],
                            "probs", json::Raw{numbers}, "num_classes", scores.size());
  });
  return ListBody(head, data, embedded);
}

}  // namespace

void Rerank(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<RerankRequest> parsed = ParseRerank(http.body);
  if (!Accept(context, "/rerank", "openai", openai::Errors(), parsed, *exchange)) return;
  RerankRequest& request = parsed.request;
  const ModelFacts facts = context.engine.Facts();
  auto error = CheckScorer(facts);
  if (!error) error = CheckTruncation(request);
  if (!error && request.documents.list.empty()) {
    error = MustBe("documents", "at least one text", "none");
  }
  if (error) return Refuse(context, *exchange, *std::move(error));
  const VectorFacts vectors = facts.vectors.value_or(VectorFacts{});
  const Pairs pairs{{request.query}, std::move(request.documents.list)};
  const std::uint32_t asked = request.top_n.value_or(0);  // 0: all
  const std::size_t top_n = asked == 0 ? pairs.right.size() : asked;
  const bool texts = request.return_documents.value_or(true);
  const AnswerHead head = MakeHead(context, "rerank", http.head);
  EmbedRun run{"documents", request.model, JobOf(request, pairs.Inputs(vectors))};
  RunEmbed(context, http.head, std::move(run), std::move(exchange), [=](const Embedded& embedded) {
    return RerankBody(head, pairs, top_n, texts, pairs.Scores(vectors, embedded), embedded);
  });
}

void Score(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<ScoreRequest> parsed = ParseScore(http.body);
  if (!Accept(context, "/score", "openai", openai::Errors(), parsed, *exchange)) return;
  ScoreRequest& request = parsed.request;
  const ModelFacts facts = context.engine.Facts();
  const Pairs pairs{std::move(request.text_1.list), std::move(request.text_2.list)};
  auto error = CheckScorer(facts);
  if (!error) error = CheckTruncation(request);
  if (!error && pairs.left.size() != 1 && pairs.left.size() != pairs.right.size()) {
    error = MustBe("text_1", "one text, or as many as `text_2`", std::to_string(pairs.left.size()));
  }
  if (!error && pairs.right.empty()) error = MustBe("text_2", "at least one text", "none");
  if (error) return Refuse(context, *exchange, *std::move(error));
  const VectorFacts vectors = facts.vectors.value_or(VectorFacts{});
  const AnswerHead head = MakeHead(context, "score", http.head);
  EmbedRun run{"text_2", request.model, JobOf(request, pairs.Inputs(vectors))};
  RunEmbed(context, http.head, std::move(run), std::move(exchange), [=](const Embedded& embedded) {
    return ScoreBody(head, pairs.Scores(vectors, embedded), embedded);
  });
}

void Classify(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<EmbeddingsRequest> parsed = ParseEmbeddings(http.body);
  if (!Accept(context, "/classify", "openai", openai::Errors(), parsed, *exchange)) return;
  EmbeddingsRequest& request = parsed.request;
  const ModelFacts facts = context.engine.Facts();
  auto error = CheckTruncation(request);
  if (!error && facts.vectors && !facts.vectors->classifies) {
    error = Unsupported("model", "gives embeddings and no classes: /v1/embeddings has them");
  }
  if (error) return Refuse(context, *exchange, *std::move(error));
  const VectorFacts vectors = facts.vectors.value_or(VectorFacts{});
  const AnswerHead head = MakeHead(context, "classify", http.head);
  EmbedRun run{"input", request.model, JobOf(request, InputsOf(std::move(request.input)))};
  RunEmbed(context, http.head, std::move(run), std::move(exchange),
           [=](const Embedded& embedded) { return ClassesBody(head, vectors, embedded); });
}

}  // namespace penstock::router::vectors
