// An Engine that a test plays by hand: it sees what was submitted and sends the events.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "router/engine.h"

namespace penstock::router::testing {

class FakeEngine final : public Engine {
 public:
  struct Call {
    RequestId id;
    GenerationRequest request;
    std::shared_ptr<GenerationSink> sink;
    bool Send(std::vector<GenerationEvent> events) const {
      return sink->OnEvents(std::move(events));
    }
  };

  RequestId Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) override;
  // A call for each sink.
  RequestId Search(GenerationRequest request,
                   std::vector<std::shared_ptr<GenerationSink>> sinks) override;
  // These call `done` before they return. The text of a chat is the JSON of its messages; each byte
  // of a text is a token, which its spelling has in brackets.
  void Render(ChatInput chat, std::function<void(RenderedChat)> done) override;
  void Tokenize(std::string text, TokenizeOptions options,
                std::function<void(TokenizedText)> done) override;
  void Detokenize(std::vector<TokenId> ids, std::function<void(DecodedTokens)> done) override;
  // A vector for each text: `facts.vectors->outputs` numbers, the first ones 3 and 4, the rest 0.
  void Embed(EmbedJob job, std::function<void(EmbedResult)> done) override;
  void Cancel(RequestId request) override;
  ModelFacts Facts() const override;
  HealthReport CheckHealth() const override;
  absl::StatusOr<RequestRecord> Explain(const std::string& id, const std::string& tenant,
                                        bool admin = false) const override;

  // The n-th submitted request (from 0); waits for it up to a deadline.
  std::optional<Call> WaitForCall(std::size_t index = 0);
  // Drops the engine's hold on all sinks, as an engine does when it is done with them.
  void ForgetCalls();
  bool WaitForCancel(RequestId id);
  std::size_t calls() const;
  void SetHealth(HealthReport report);

  // Set before the server starts.
  ModelFacts facts;
  std::map<std::string, RequestRecord> records;
  TokenizeOptions tokenize_options;  // of the last call
  EmbedJob embed_job;                // of the last call
  // When set, a request is answered with these events at once, from a thread of its own.
  std::function<std::vector<GenerationEvent>(const GenerationRequest&)> script;

  ~FakeEngine() override;

 private:
  static constexpr std::chrono::seconds kPatience{10};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  std::vector<RequestId> cancelled_;
  std::size_t count_ = 0;
  HealthReport health_{Health::kReady, ""};
  std::vector<std::jthread> threads_;
};

// Events of an answer with these tokens (id, text), all of them at once.
GenerationToken TokenEvent(std::uint32_t index, TokenId id, std::string text, float logprob,
                           bool special = false);

}  // namespace penstock::router::testing
