// An engine without a model for fuzz targets: one thread, no clock. It keeps what was submitted;
// Play answers it after the handler has returned, as the seam asks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "router/engine.h"

namespace penstock::fuzz {

class PlayedEngine final : public router::Engine {
 public:
  RequestId Submit(router::GenerationRequest request,
                   std::shared_ptr<router::GenerationSink> sink) override;
  RequestId Search(router::GenerationRequest request,
                   std::vector<std::shared_ptr<router::GenerationSink>> sinks) override;
  void Render(router::ChatInput chat, std::function<void(router::RenderedChat)> done) override;
  void Tokenize(std::string text, router::TokenizeOptions options,
                std::function<void(router::TokenizedText)> done) override;
  void Detokenize(std::vector<TokenId> ids,
                  std::function<void(router::DecodedTokens)> done) override;
  void Embed(router::EmbedJob job, std::function<void(router::EmbedResult)> done) override;
  void Cancel(RequestId) override {}
  router::ModelFacts Facts() const override { return facts; }
  router::HealthReport CheckHealth() const override { return {router::Health::kReady, ""}; }
  absl::StatusOr<router::RequestRecord> Explain(const std::string&, const std::string&,
                                                bool) const override {
    return absl::NotFoundError("unknown");
  }

  // Answers all that is open, in the way that `script` chooses.
  void Play(std::uint64_t script);

  router::ModelFacts facts;

 private:
  struct Open {
    RequestId id;
    router::GenerationRequest request;
    std::shared_ptr<router::GenerationSink> sink;
  };

  static std::vector<router::GenerationEvent> Answer(const Open& open, std::uint64_t script);

  std::vector<Open> open_;
  std::vector<std::function<void()>> later_;
  std::uint64_t ids_ = 0;
};

}  // namespace penstock::fuzz
