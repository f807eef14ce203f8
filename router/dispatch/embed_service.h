// Vectors of texts for the HTTP interfaces: tokens and their limits on the text pool, then the
// queue to the shards. Part of the GenerationService of a model that gives vectors.
#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "router/dispatch/embed_queue.h"
#include "router/engine.h"
#include "text/tokenizer.h"

namespace penstock::router {

class EmbedService {
 public:
  using Done = std::function<void(EmbedResult)>;

  EmbedService(const EmbedQueueOptions& options, const ModelFacts& facts,
               std::shared_ptr<const text::Tokenizer> tokenizer);

  // On a thread of the text pool. `done` is called once, from this thread or another.
  void Run(const EmbedJob& job, const Done& done);

  EmbedQueue& queue() { return queue_; }

 private:
  using Texts = std::vector<EmbedText>;

  std::variant<Texts, GenerationError> TokensOf(const EmbedJob& job) const;
  std::variant<EmbedText, GenerationError> TextOf(const EmbedJob& job,
                                                  const EmbedInput& input) const;
  std::variant<EmbedText, GenerationError> FromIds(const EmbedJob& job,
                                                   const std::vector<TokenId>& ids) const;

  const std::uint32_t max_tokens_;
  const std::uint32_t vocabulary_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  EmbedQueue queue_;
};

}  // namespace penstock::router
