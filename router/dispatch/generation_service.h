// Generates text for the HTTP interfaces: requests in, text events out. Owns the core loop and the
// text pool.
//
//   Submit -> text pool (prompt) -> CoreLoop (mailbox, scheduler, shards) -> text pool (text) ->
//   sink
//
// Threads: the calls of Engine, Attach and Drain come from any thread, Start and Stop from one.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "router/dispatch/adapter_service.h"
#include "router/dispatch/beam_search.h"
#include "router/dispatch/cached_prompts.h"
#include "router/dispatch/coalescer.h"
#include "router/dispatch/core_loop.h"
#include "router/dispatch/embed_service.h"
#include "router/dispatch/grammar_checker.h"
#include "router/dispatch/health_probe.h"
#include "router/dispatch/prompt_history.h"
#include "router/dispatch/request_ledgers.h"
#include "router/dispatch/request_records.h"
#include "router/dispatch/request_task.h"
#include "router/dispatch/text_pool.h"
#include "router/engine.h"
#include "router/metrics/metrics.h"
#include "router/rank/rank_model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace penstock::router {

struct GenerationServiceOptions {
  CoreLoopOptions core;
  std::uint32_t text_threads = 2;
  Duration stream_interval{0};        // see router/dispatch/coalescer.h
  std::optional<std::uint64_t> seed;  // for sampled requests without one; nullopt: random
  ModelFacts facts;                   // its limits are enforced
  std::vector<TokenId> eos_ids;
  bool grammars = true;        // check them, where the shards offer any
  bool show_requests = false;  // see router/dispatch/shown_request.h
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const text::ChatTemplate> chat;  // null: chats are refused
  bool drop_volatile_lines = false;                // see router/stream/volatile_lines.h
  std::uint32_t prompt_history = 256;              // see router/dispatch/prompt_history.h
  std::uint32_t block_size = 16;                   // of the shards' KV cache
  // Whether lost groups are formed again. If so, queued requests wait while there is no group, and
  // new ones are refused with Retry-After. If not, the loss of the last group ends all requests.
  bool groups_return = false;
  std::shared_ptr<const RankModel> ranks;  // predicts output lengths; null: none
  HealthProbeOptions health_probe;         // off by default
  EmbedQueueOptions embed;                 // of a model that gives vectors
};

class GenerationService final : public Engine, private CoreListener {
 public:
  // The metrics must outlive the service.
  GenerationService(GenerationServiceOptions options, Metrics& metrics);
  ~GenerationService() override;  // Stop

  // Starts the core. The service is ready once a group is attached. `on_lost` is called on the
  // core's thread when a group is lost, after its requests got their errors; it must not block.
  absl::Status Start(std::function<void(LostGroup lost)> on_lost);

  // A newly formed group.
  void Attach(std::unique_ptr<GroupLink> link);

  // Takes no new requests. Open ones end normally, or with an error if no group is left. `on_idle`
  // is called once, from any thread, when none is open; it must not block. Returns how many are
  // open.
  std::size_t Drain(std::function<void()> on_idle);

  // Drops what is open. No sink is called after it has returned.
  void Stop();

  RequestId Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) override;
  RequestId Search(GenerationRequest request,
                   std::vector<std::shared_ptr<GenerationSink>> sinks) override;
  void Render(ChatInput chat, std::function<void(RenderedChat)> done) override;
  void Tokenize(std::string text, TokenizeOptions options,
                std::function<void(TokenizedText)> done) override;
  void Detokenize(std::vector<TokenId> ids, std::function<void(DecodedTokens)> done) override;
  void Embed(EmbedJob job, std::function<void(EmbedResult)> done) override;
  void Cancel(RequestId request) override;
  ModelFacts Facts() const override;
  HealthReport CheckHealth() const override;
  void ProbeHealth(std::function<void(const HealthReport&)> answer) override;
  absl::StatusOr<RequestRecord> Explain(const std::string& id, const std::string& tenant,
                                        bool admin = false) const override;
  void Delivered(RequestId request, Time at) override { ledgers_.Close(request, at); }
  std::optional<TimeTotals> Times(RequestId request) const override;
  bool Watch(std::shared_ptr<StepSink> sink) override { return core_.Watch(std::move(sink)); }
  std::vector<AdapterInfo> Adapters() const override { return adapters_.List(); }
  void LoadAdapter(AdapterFolder adapter, AdapterDone done) override;
  void UnloadAdapter(const std::string& name, AdapterDone done) override;
  std::vector<CachedPrompt> CachedPrompts(const std::string& tenant) const override;
  std::size_t ForgetCachedPrompts(const std::string& tenant,
                                  std::optional<std::uint64_t> id) override;
  void FlushPrefixes(const std::string& tenant) override;

 private:
  void OnApplied(const scheduler::Input& input, const scheduler::Outputs& outputs) override {
    ledgers_.Take(input, outputs);
  }
  void Describe(StepReport& report) override { ledgers_.Describe(report, SteadyNow()); }
  void OnPins(const std::vector<scheduler::PinChange>& changes) override;
  void OnOutputs(std::span<scheduler::Event> events, std::span<const Decision> decisions) override;
  std::optional<Time> HoldsUntil() const override;
  void OnGroupLost(LostGroup lost) override;

  // Counts the job as open until its result.
  std::function<void(EmbedResult)> Counted(std::function<void(EmbedResult)> done);
  // Sets the adapter that the request names. Or why it cannot.
  std::optional<GenerationError> TakeAdapter(GenerationRequest& request);
  void RunDue(bool more_of_one);
  void FailAllUnlessServed();
  void SubmitProbe(std::shared_ptr<GenerationSink> sink);
  void Forget(RequestId request);
  void ForgetSearch(RequestId search);
  void TellIfIdle();

  const ModelFacts facts_;
  const PromptBuilder prompts_;
  const std::unique_ptr<GrammarChecker> grammars_;  // null: none are offered
  const std::unique_ptr<EmbedService> embedder_;    // null: the model generates text
  AdapterService adapters_;                         // outlives the requests
  RequestRecords records_;
  RequestLedgers ledgers_;
  PromptHistory history_;
  PrefixFlushes flushes_;
  const std::uint32_t block_size_;
  CachedPromptList cached_prompts_;
  std::function<void(LostGroup)> on_lost_;

  mutable std::mutex mutex_;
  HealthReport health_{Health::kStarting, "the model is being loaded"};
  std::size_t groups_up_ = 0;
  std::size_t open_embeds_ = 0;
  bool draining_ = false;
  std::function<void()> on_idle_;
  bool over_ = false;  // no group is left and none will come
  std::uint64_t last_request_ = 0;
  // Open requests: from Submit until the core's terminal event.
  std::unordered_map<RequestId, std::shared_ptr<RequestTask>> tasks_;
  std::unordered_map<RequestId, std::shared_ptr<BeamSearch>> searches_;
  Coalescer coalescer_;
  std::vector<std::shared_ptr<Strand>> due_;  // the core's thread only: to be run next

  const std::shared_ptr<const RankModel> ranks_;  // null: there is none
  const RequestServices services_;
  const BeamServices beam_services_;
  CoreLoop core_;
  const bool groups_return_;
  HealthProbe probe_;
  TextPool pool_;  // last: its threads use all of the above
};

}  // namespace penstock::router
