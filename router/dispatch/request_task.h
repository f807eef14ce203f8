// One request between the client's sink and the scheduler: prepares the prompt, turns the core's
// events into text events, finds stop strings. All of that runs on the text pool, one job at a
// time; the public calls only put something into the mailbox.
//
// The mailbox is bounded by the request itself: one beginning, one verdict of its grammar, at most
// max_new_tokens events of the core (those that wait are handled together) and one error.
//
// Ends: with the core's terminal event, with an error found while preparing, or with an error from
// outside (Fail). Exactly one terminal event goes to the sink, unless the client has gone.
#pragma once

#include <absl/container/inlined_vector.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/dispatch/grammar_checker.h"
#include "router/dispatch/request_records.h"
#include "router/dispatch/text_pool.h"
#include "router/engine.h"
#include "router/stream/prompt_builder.h"
#include "router/stream/text_stream.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::router {

// Seeds of sampled requests that bring none. Thread-safe.
class SeedSource {
 public:
  // `fixed`: every such request gets this one.
  explicit SeedSource(std::optional<std::uint64_t> fixed);
  std::uint64_t Draw();

 private:
  const std::optional<std::uint64_t> fixed_;
  std::mutex mutex_;
  std::mt19937_64 generator_;
};

// What all requests share. Outlives them.
struct RequestServices {
  const PromptBuilder& prompts;
  GrammarChecker* const grammars;  // null: none are offered
  const std::shared_ptr<const text::Tokenizer> tokenizer;
  const std::vector<TokenId> eos_ids;
  SeedSource& seeds;
  RequestRecords& records;
  // Shards that ask for it (simulated ones) see the request itself in its trace id.
  const bool shows_requests = false;
  // To the core. False: its mailbox is full or closed.
  const std::function<bool(decltype(scheduler::Input::what))> post;
  // Puts a lane on the text pool.
  const std::function<void(std::shared_ptr<Lane>)> schedule;
  // The core never heard of this request, or never will again.
  const std::function<void(RequestId)> forget;
};

class RequestTask final : public Lane,
                          public GrammarWaiter,
                          public std::enable_shared_from_this<RequestTask> {
 public:
  RequestTask(RequestId id, GenerationRequest request, std::shared_ptr<GenerationSink> sink,
              const RequestServices& services, Time arrived);

  // Any thread. True: the caller must schedule the lane.
  [[nodiscard]] bool Begin();
  // Events of one step, taken out of `events`. They belong together: the sink gets the last token
  // with the end.
  [[nodiscard]] bool Deliver(std::span<scheduler::Event> events, Time at);
  [[nodiscard]] bool Fail(GenerationError error);

  // Any thread: these never change.
  const std::string& tenant() const { return request_.tenant; }
  const std::string& cached_prompt() const { return request_.cached_prompt; }

  // Any thread: the client has gone. The sink hears nothing more that was not on its way already.
  void Abandon() { abandoned_ = true; }

  bool RunOnce() override;

  // Of the grammar, on the checker's thread.
  bool Waits() const override { return !abandoned_; }
  void OnVerdict(GrammarVerdict verdict) override;

 private:
  struct Beginning {};
  struct CoreEvent {
    scheduler::Event event;
    Time at;
  };
  // Nearly all events of the core: one token without alternatives.
  struct PlainToken {
    TokenId token;
    float logprob;
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
  void Send();
  void Post(Prompt prompt);
  void Take(const scheduler::Event& event);
  void OnStarted(const scheduler::Started& started);
  void OnTokens(std::span<const SampledToken> tokens);
  void OnFinished(const scheduler::Finished& finished);
  void AddStart(std::vector<TokenInfo> prompt);
  void EndWith(GenerationError error);
  void EndBroken(const absl::Status& status);
  void Flush();
  bool wants_prompt_logprobs() const { return request_.logprobs.prompt_logprobs; }

  // The mailbox comes first: every token passes it from one processor's cache to another's, and so
  // do the counts of owners, which stand before it.
  std::mutex mutex_;
  bool scheduled_ = false;  // on the pool's queue or running
  PlainTokens tokens_;      // older than all of mailbox_
  std::vector<Item> mailbox_;

  const RequestId id_;
  GenerationRequest request_;
  std::shared_ptr<GenerationSink> sink_;
  const RequestServices& services_;
  std::atomic<bool> abandoned_{false};

  // The lane's own, on whatever thread runs it.
  std::vector<Item> items_;  // of this run; empty between runs, kept for its memory
  bool ended_ = false;       // nothing more for the sink
  bool awaits_end_ = false;  // a stop string was found: its token goes out with the core's end
  Prompt built_;             // while the grammar is checked
  GrammarSpec grammar_;
  std::optional<TextStream> stream_;
  std::vector<TokenId> prompt_;          // kept for prompt logprobs only
  std::vector<GenerationEvent> events_;  // of this run
  std::uint32_t prompt_tokens_ = 0;
  std::uint32_t prompt_characters_ = 0;
  std::uint32_t cached_tokens_ = 0;
  Time arrived_;
  Time queued_;
  Time started_;
  std::optional<Time> first_token_;
  Time now_;  // of the event being handled
};

}  // namespace penstock::router
