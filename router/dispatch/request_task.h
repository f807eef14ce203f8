// One request between the client's sink and the scheduler. Prepares the prompt, turns the core's
// events into text events and finds stop strings. All of that runs on the text pool, as a strand;
// the public calls only put items into its mailbox.
//
// The request bounds its mailbox: one beginning, one grammar verdict, at most max_new_tokens events
// of the core and one error. Items that have gathered are handled together.
//
// A request ends with the core's terminal event, with an error of its preparation, or with an error
// from outside (Fail). The sink gets exactly one terminal event, unless the client has gone.
#pragma once

#include <absl/container/inlined_vector.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/dispatch/grammar_checker.h"
#include "router/dispatch/prefix_flushes.h"
#include "router/dispatch/prompt_history.h"
#include "router/dispatch/request_ledgers.h"
#include "router/dispatch/request_records.h"
#include "router/dispatch/text_pool.h"
#include "router/engine.h"
#include "router/rank/rank_model.h"
#include "router/stream/prompt_builder.h"
#include "router/stream/text_stream.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::router {

// What all requests share. Must outlive them.
struct RequestServices {
  const PromptBuilder& prompts;
  GrammarChecker* const grammars;  // null: none are offered
  const std::shared_ptr<const text::Tokenizer> tokenizer;
  const std::vector<TokenId> eos_ids;
  const std::optional<std::uint64_t> seed;  // for sampled requests without one; nullopt: random
  RequestRecords& records;
  RequestLedgers& ledgers;
  PromptHistory& history;
  const PrefixFlushes& flushes;
  const RankModel* const ranks;  // predicts output lengths; null: there is no model
  // Whether the text of the request is sent in the trace id, for simulated shards.
  const bool shows_requests = false;
  // Sends an input to the core. False: its mailbox is full or closed.
  const std::function<bool(decltype(scheduler::Input::what))> post;
  // The same, but when the time has come.
  const std::function<void(Time, decltype(scheduler::Input::what))> post_later;
  // Queues a strand on the text pool.
  const std::function<void(std::shared_ptr<Strand>)> schedule;
  // Drops a request that the core does not know.
  const std::function<void(RequestId)> forget;
};

class RequestTask final : public Strand,
                          public GrammarWaiter,
                          public std::enable_shared_from_this<RequestTask> {
 public:
  RequestTask(RequestId id, GenerationRequest request, std::shared_ptr<GenerationSink> sink,
              const RequestServices& services, Time arrived);

  // Any thread. True: the caller must queue the strand on the pool.
  [[nodiscard]] bool Begin();
  // Moves the events of one step out of `events`. They are handled together, so that the sink gets
  // the last token with the end.
  [[nodiscard]] bool Deliver(std::span<scheduler::Event> events, Time at);
  [[nodiscard]] bool Fail(GenerationError error);

  // Any thread. Constant.
  const std::string& tenant() const { return request_.tenant; }
  const std::string& kept_text() const {
    const auto* chat = std::get_if<ChatInput>(&request_.prompt);
    return chat == nullptr ? request_.cached_prompt : chat->kept_messages_json;
  }

  // Any thread. The client has gone: the sink gets no event but one that is being delivered.
  void Abandon() { abandoned_ = true; }

  bool RunOnce() override;

  // GrammarWaiter, on a thread of the checker.
  bool Waits() const override { return !abandoned_; }
  void OnVerdict(GrammarVerdict verdict) override;

 private:
  struct Beginning {};
  struct CoreEvent {
    scheduler::Event event;
    Time at;
  };
  // The most frequent event of the core: one token without alternatives.
  struct PlainToken {
    TokenId token;
    float logprob;
    bool forced;
    Time at;
  };
  using PlainTokens = absl::InlinedVector<PlainToken, 8>;
  using Item = std::variant<Beginning, GrammarVerdict, CoreEvent, GenerationError>;

  bool Put(Item item);
  void Keep(scheduler::Event& event, Time at);
  void Handle(const PlainToken& plain);
  void Handle(Item&& item);
  void Prepare();
  void Refuse(GenerationError error);
  void AskForGrammar();
  void Take(GrammarVerdict verdict);
  void TakeGrammar(GrammarSpec spec);
  void Send();
  void Post(Prompt prompt);
  void Take(const scheduler::Event& event);
  void OnStarted(const scheduler::Started& started);
  void OnTokens(std::span<const SampledToken> tokens);
  void OnFinished(const scheduler::Finished& finished);
  void AddStart(PromptReport report);
  void EndWith(GenerationError error);
  void EndBroken(const absl::Status& status);
  void Flush();
  bool wants_prompt_logprobs() const { return request_.logprobs.prompt_logprobs; }
  bool shows_prompt() const { return wants_prompt_logprobs() || request_.show_prompt; }

  // The mailbox is the first member, in the cache line of the reference counts: every token moves
  // both from one processor's cache to another's.
  std::mutex mutex_;
  bool scheduled_ = false;  // queued on the pool, or running
  PlainTokens tokens_;      // older than all of mailbox_
  std::vector<Item> mailbox_;

  const RequestId id_;
  GenerationRequest request_;
  std::shared_ptr<GenerationSink> sink_;
  const RequestServices& services_;
  std::atomic<bool> abandoned_{false};

  // For the thread that runs the strand.
  std::vector<Item> items_;  // of this run; kept between runs for its memory
  bool ended_ = false;       // the sink gets no more events
  bool awaits_end_ = false;  // a stop string was found: its token is sent with the core's end
  Prompt built_;             // while the grammar is checked
  GrammarSpec grammar_;
  std::optional<TextStream> stream_;
  std::vector<TokenId> prompt_;          // set if the start shows it
  std::vector<GenerationEvent> events_;  // of this run
  std::uint32_t prompt_tokens_ = 0;
  std::string prompt_end_;
  std::uint32_t cached_tokens_ = 0;
  std::uint32_t kept_tokens_ = 0;
  Time arrived_;
  Time queued_;
  Time started_;
  std::optional<Time> first_token_;
  Time now_;  // of the event being handled
};

}  // namespace penstock::router
