// The generation side behind router/engine.h: requests in, text events out, round one CoreLoop and
// the replica groups that are up.
//
//   Submit -> text pool (prompt) -> CoreLoop (mailbox, scheduler, shards) -> text pool (text) ->
//   sink
//
// Threads: Attach, Submit, Cancel, Facts, CheckHealth, Explain, Drain from any; the text pool and
// the core loop's thread are its own.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/dispatch/core_loop.h"
#include "router/dispatch/health_probe.h"
#include "router/engine.h"
#include "router/metrics/metrics.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace penstock::router {

struct RouterEngineOptions {
  CoreLoopOptions core;
  std::uint32_t text_threads = 2;
  Duration stream_interval{0};        // see router/dispatch/held_lanes.h
  std::optional<std::uint64_t> seed;  // of sampled requests that bring none; absent: drawn
  ModelFacts facts;                   // its limits are enforced
  std::vector<TokenId> eos_ids;
  bool grammars = true;        // check them, where the shards offer any
  bool show_requests = false;  // see router/dispatch/shown_request.h
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const text::ChatTemplate> chat;  // null: chats are refused
  // Lost groups are formed again: without any group, queued requests wait, and new ones are told to
  // try again later. Else the loss of the last group is the end of all.
  bool groups_return = false;
  HealthProbeOptions health_probe;  // off by default
};

class RouterEngine final : public Engine {
 public:
  // The metrics must outlive the engine.
  RouterEngine(RouterEngineOptions options, Metrics& metrics);
  ~RouterEngine() override;  // Stop

  // Starts the core; ready from the first group that is attached. `on_lost` is called on the core's
  // thread each time a group serves no more and its requests have got their errors; it must not
  // block. Once.
  absl::Status Start(std::function<void(LostGroup lost)> on_lost);

  // A newly formed group.
  void Attach(std::unique_ptr<GroupLink> link);

  // Takes no new requests; what is open ends normally, or with an error once no group is left.
  // `on_idle` is called once, from any thread, when nothing is open any more; it must not block.
  // Gives how many requests are open.
  std::size_t Drain(std::function<void()> on_idle);

  // Ends everything; no sink is called after it has returned. What is still open is dropped.
  void Stop();

  RequestId Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) override;
  void Render(ChatInput chat, std::function<void(RenderedChat)> done) override;
  void Tokenize(std::string text, bool add_special_tokens,
                std::function<void(TokenizedText)> done) override;
  void Cancel(RequestId request) override;
  ModelFacts Facts() const override;
  HealthReport CheckHealth() const override;
  void ProbeHealth(std::function<void(const HealthReport&)> answer) override;
  absl::StatusOr<RequestRecord> Explain(const std::string& id,
                                        const std::string& tenant) const override;
  std::vector<CachedPrompt> CachedPrompts(const std::string& tenant) const override;
  std::size_t ForgetCachedPrompts(const std::string& tenant,
                                  std::optional<std::uint64_t> id) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::router
