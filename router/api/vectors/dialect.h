// Vectors and scores: OpenAI's embeddings, the rerank route of Jina and Cohere, score and classify
// of vLLM, and embed of text-embeddings-inference. Errors are in OpenAI's form.
#pragma once

#include <memory>

#include "router/api/dialect.h"

namespace penstock::router::vectors {

std::unique_ptr<const Dialect> MakeDialect();

void Embeddings(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Embed(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Rerank(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Score(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Classify(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::vectors
