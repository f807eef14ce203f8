#include "router/api/vectors/dialect.h"

#include <string_view>
#include <vector>

#include "router/api/docs/shapes.h"
#include "router/api/openai/dialect.h"
#include "router/api/vectors/request.h"

namespace penstock::router::vectors {
namespace {

std::vector<Route> Routes() {
  const RouteDoc rerank = {.body = "RerankRequest", .contents = {{{kJson, "RerankResponse"}}}};
  const RouteDoc score = {.body = "ScoreRequest", .contents = {{{kJson, "ScoreResponse"}}}};
  const RouteDoc classify = {.body = "EmbeddingsRequest", .contents = {{{kJson, "Classes"}}}};
  return {
      Post("/v1/embeddings", Embeddings,
           {.body = "EmbeddingsRequest", .contents = {{{kJson, "EmbeddingList"}}}}),
      Post("/embed", Embed, {.body = "EmbedRequest", .contents = {{{kJson, "EmbedResponse"}}}}),
      Post("/v1/rerank", Rerank, rerank),
      Post("/v2/rerank", Rerank, rerank),
      Post("/rerank", Rerank, rerank),
      Post("/v1/score", Score, score),
      Post("/score", Score, score),
      Post("/v1/classify", Classify, classify),
      Post("/classify", Classify, classify),
  };
}

constexpr docs::Shape kShapes[] = {
    {"EmbeddingUsage", "prompt_tokens:integer total_tokens:integer"},
    {"EmbeddingItem", "object:string index:integer embedding:number[],string"},
    {"EmbeddingList",
     "id:string object:string created:integer model:string data:EmbeddingItem[] "
     "usage:EmbeddingUsage"},
    {"EmbedResponse", ":number[][]"},
    {"RerankDocument", "text:string"},
    {"RerankResult", "index:integer document?:RerankDocument relevance_score:number"},
    {"RerankResponse", "id:string model:string usage:EmbeddingUsage results:RerankResult[]"},
    {"ScoreItem", "index:integer object:string score:number"},
    {"ScoreResponse",
     "id:string object:string created:integer model:string data:ScoreItem[] "
     "usage:EmbeddingUsage"},
    {"ClassItem", "index:integer label:string probs:number[] num_classes:integer"},
    {"Classes",
     "id:string object:string created:integer model:string data:ClassItem[] "
     "usage:EmbeddingUsage"},
};

class VectorDialect final : public Dialect {
 public:
  VectorDialect() : Dialect(Routes()) {}
  const ErrorFormat& Errors() const override { return openai::Errors(); }
  bool Owns(std::string_view path) const override {
    for (const Route& route : routes()) {
      if (route.pattern == path) return true;
    }
    return false;
  }
  void AppendSchemas(std::string& out) const override {
    AppendRequestSchemas(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect() { return std::make_unique<VectorDialect>(); }

}  // namespace penstock::router::vectors
