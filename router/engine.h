// The seam between the HTTP side (bytes, dialects) and the generation side (text, tokens,
// scheduler). A dialect lowers its JSON to one GenerationRequest and raises GenerationEvents back
// to its own JSON or SSE. Neither side sees the other's libraries.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/adapter_name.h"
#include "common/ids.h"
#include "common/plan/grammar.h"
#include "common/plan/sampling.h"
#include "common/request/decision.h"
#include "common/request/finish_reason.h"
#include "common/request/request_class.h"
#include "common/time.h"
#include "router/adapter_info.h"
#include "router/ledger_view.h"
#include "router/telemetry/trace_context.h"

namespace penstock::router {

// Chat input; JSON texts as the client sent them (order of keys kept).
struct ChatInput {
  std::string messages_json;
  std::string tools_json;   // empty = none
  std::string kwargs_json;  // extra template variables, empty = none
  // Messages with which these ones begin. What both prompts begin with is kept beyond the request.
  std::string kept_messages_json = {};
  std::optional<std::string> template_source = {};  // in place of the server's chat template
  bool add_generation_prompt = true;
  // The key of the first arguments of an earlier call that are not the text of a JSON object. Many
  // templates fail on them. Empty: there are none.
  std::string text_arguments = {};
};

// What the answer must match.
//
// `source` is a unique name, under which engines cache what they learn about the grammar. Empty: it
// is not cached. `write` makes the grammar that the shards enforce from what the client sent. The
// engine calls it on its own threads and reports its error only if the rest of the request is
// right.
struct Grammar {
  using Written = std::variant<GrammarSpec, std::string>;  // or why it cannot be
  std::string source;
  // Null: no grammar. It returns the same each time. It may be called from several threads at once.
  std::function<Written()> write;
  // Grammars that it is made of, and the keys of the request that gave them. If it is refused, the
  // first one that is refused alone too is named.
  struct Part {
    std::string field;
    GrammarSpec spec;
  };
  std::vector<Part> parts = {};

  explicit operator bool() const { return write != nullptr; }
};

// The reasoning that may stand before the text of an answer, and before its grammar.
struct ReasoningRule {
  struct Markers {
    std::string open;  // empty: the answer always begins with reasoning
    std::string close;
    std::string forced;  // the text that closes it when the budget is spent
  };
  std::vector<Markers> markers;         // none: there is no rule
  bool may_open = false;                // the model may open it, if the prompt has not
  std::optional<std::uint32_t> budget;  // most tokens of reasoning

  explicit operator bool() const { return !markers.empty(); }
};

// How stop strings end the text.
enum class StopRule : std::uint8_t {
  kHide,      // before the string; text that may be part of one waits (OpenAI)
  kShow,      // after the string (vLLM's include_stop_str_in_output)
  kTokenEnd,  // after a token whose text ends with the string (TGI)
};

// When a beam search ends that has `width` finished texts (transformers' names).
enum class EarlyStopping : std::uint8_t {
  kEstimate,  // false: if no text may become better, by its score at its present length
  kFull,      // true: at once
  kNever,     // "never": if no text may become better, by its score at the greatest length
};

struct BeamParams {
  std::uint32_t width = 1;    // texts that live on after each step
  std::uint32_t results = 1;  // the best of them are answers; at most `width`
  float length_penalty = 1;   // a text's score is divided by its length to this power
  EarlyStopping early_stopping = EarlyStopping::kEstimate;
};

struct GenerationRequest {
  // When head and body were complete. Absent: when the engine gets the request.
  std::optional<Time> arrived;
  std::optional<Time> read;
  std::string client_id;  // X-Request-Id given or made; for logs and GET /requests/{id}
  // First as the client gave it, then with the router's own span. The shards are given it.
  std::optional<TraceContext> trace;
  std::string operation;  // names the span
  std::variant<std::string, std::vector<TokenId>, ChatInput> prompt;
  bool add_special_tokens = true;
  std::string cached_prompt;  // stands before a text prompt and is kept beyond the request
  bool hold_prompt = false;   // keeps the prompt for a moment, for requests that begin with it
  std::optional<std::uint32_t> truncate;        // keep the last N prompt tokens
  std::optional<std::uint32_t> max_new_tokens;  // absent: what is left of max_total_tokens
  bool exact_length = false;  // refuse a max_new_tokens that does not fit, never cut it
  std::uint32_t min_new_tokens = 0;
  // Stop strings. An empty one (with StopRule::kTokenEnd only) ends after the first token.
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  SamplingParams sampling;
  std::optional<std::uint64_t> seed;  // absent: drawn at admission and reported
  LogprobRequest logprobs;
  std::vector<std::string> bad_words;  // texts that the output must not contain
  bool show_prompt = false;  // GenerationStart has the prompt, without prompt logprobs too
  StopRule stop_rule = StopRule::kHide;
  // Special tokens that are in one of these texts stay in the visible text.
  std::vector<std::string> kept_markers;
  // Alternatives and prompt tokens are decoded one by one (TGI), not as they continue a text.
  bool decode_alone = false;
  RequestClass request_class = RequestClass::kOther;
  std::int32_t priority = 0;           // larger is sooner; with --order priority
  std::uint32_t predicted_tokens = 0;  // the client's forecast of its output; 0 = none
  std::string tenant;
  std::string account;           // charged for its work, for fair shares; empty: there are none
  std::uint32_t weight = 1;      // of the account
  bool shares_prefixes = false;  // the tenant's prefix cache is that of all
  bool asked_sampling = false;   // do_sample as the client wrote it; only shown to shards that ask
  Grammar grammar;
  ReasoningRule reasoning;
  std::optional<std::string> adapter_id;  // the name of a loaded adapter
  // Set by the engine: its id on the shards. It is not unloaded while this is held.
  std::shared_ptr<const std::string> adapter;
  // Of Engine::Search. Its sampling has no effect but penalties, bias and bad words.
  std::optional<BeamParams> beams;
  bool step_of_search = false;  // a part of one, without a record of its own
};

struct TokenInfo {
  TokenId id = 0;
  std::string text;  // this token's own increment; may be empty while a character is incomplete
  std::optional<float> logprob;  // none: not asked for, or the grammar forced the token
  bool special = false;
};

// --- Events, in order. Exactly one GenerationEnd or GenerationError, and nothing after it.
// The last GenerationToken and the GenerationEnd come in one OnEvents call, because TGI's last
// stream event carries both: a token that completes a stop string waits for the end.

struct GenerationStart {
  RequestId request;
  std::uint32_t prompt_tokens = 0;
  std::uint64_t seed = 0;
  std::string prompt_end;         // the last characters of a chat's prompt
  std::vector<TokenInfo> prompt;  // filled when prompt logprobs were asked for, or show_prompt
  // For each of them, with LogprobRequest::prompt_top_n. The first has rank 0 and no alternatives.
  struct Alternatives {
    std::uint32_t rank = 0;
    std::vector<TokenInfo> top;
  };
  std::vector<Alternatives> prompt_alternatives = {};
  std::uint32_t cached_tokens = 0;  // of the prompt
  std::uint32_t kept_tokens = 0;    // leading ones that are kept beyond the request
};

struct GenerationToken {
  std::uint32_t index = 0;  // 0-based position in the output
  TokenInfo token;
  std::vector<TokenInfo> top;  // alternatives, most probable first
  std::string delta;           // text now safe to show (hold-back applied), valid UTF-8
};

struct RequestTimings {
  Duration validation{0};   // arrival -> queued
  Duration queue{0};        // queued -> first plan
  Duration inference{0};    // first plan -> end
  Duration first_token{0};  // arrival -> first token
  Duration total{0};
};

struct GenerationEnd {
  FinishReason reason = FinishReason::kLength;
  std::uint32_t generated_tokens = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::string tail;                 // held-back text released at the end
  std::string text;                 // the whole generated text by the request's stop_rule
  std::optional<std::string> stop;  // the stop string that matched
  std::uint64_t seed = 0;
  bool sampled = false;
  RequestTimings timings;
};

// A closed set. Dialects give each kind its HTTP status and body.
enum class ErrorKind : std::uint8_t {
  kValidation,   // the request is wrong: field, value, limit
  kTemplate,     // chat template refused or missing
  kOverloaded,   // queue or permits full
  kUnavailable,  // no group is up
  kDraining,     // the server finishes its requests and takes no more
  kGeneration,   // failed after it was accepted
  kInternal,
};

// The numbers of a request that is too long, for dialects with their own texts.
struct LengthExceeded {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_new_tokens = 0;  // 0: the prompt alone is over max_input_tokens
  std::uint32_t limit = 0;           // max_total_tokens, or max_input_tokens for the prompt alone
  std::uint32_t context = 0;         // max_total_tokens
  bool at_least = false;             // prompt_tokens is a lower bound
};

struct GenerationError {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;                   // TGI's words for a validation error, without its prefix
  std::string field;                     // empty when no single field is at fault
  std::optional<LengthExceeded> length;  // with kValidation
};

using GenerationEvent =
    std::variant<GenerationStart, GenerationToken, GenerationEnd, GenerationError>;

// Receives the events of one request. OnEvents is called by one thread at a time, in order, never
// from inside Submit. It must not block. It returns false if the client is too slow or has left.
// The engine then cancels the request and makes no more calls.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  virtual bool OnEvents(std::vector<GenerationEvent> events) = 0;
};

// A token of a text and its place: begin and end in bytes, {0, 0} when it was added.
struct TokenSpan {
  TokenId id = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::string spelling = {};  // the vocabulary's, where asked for
};
struct TokenizeOptions {
  bool add_special_tokens = true;
  bool spellings = false;
};

using RenderedChat = std::variant<std::string, GenerationError>;
using DecodedTokens = std::variant<std::string, GenerationError>;
using TokenizedText = std::variant<std::vector<TokenSpan>, GenerationError>;

// A text to embed or to classify, or a pair of texts to score.
struct EmbedInput {
  std::variant<std::string, std::vector<TokenId>> text;
  std::optional<std::string> pair = {};  // with a text, not with token ids
};

struct EmbedJob {
  std::vector<EmbedInput> inputs;
  bool add_special_tokens = true;
  // Texts are cut to this many tokens, at most to the limit of the model. Absent: a text that is
  // too long is refused.
  std::optional<std::uint32_t> truncate = {};
};

struct Embedded {
  std::vector<std::vector<float>> vectors;  // one for each input, as the model gives them
  std::uint32_t tokens = 0;                 // of all inputs
};
using EmbedResult = std::variant<Embedded, GenerationError>;

// What the vectors of a model are. Such a model generates no text.
struct VectorFacts {
  bool classifies = false;          // else it embeds
  std::string pooling;              // cls, mean, last or max
  std::uint32_t outputs = 0;        // numbers of a vector
  bool normalized = false;          // an embedding is made a unit vector
  std::vector<std::string> labels;  // of the classes
  bool sigmoid = false;             // classes do not exclude each other
  bool plain_scores = false;        // the score of a pair is the number itself, without a sigmoid
  // Sizes to which an embedding may be cut. Only a model that was trained for it has any.
  bool any_size = false;
  std::vector<std::uint32_t> sizes;
  std::map<std::string, std::string, std::less<>> prompts;  // by name: what stands before a text
  std::string default_prompt;  // the name of the prompt of requests that name none
  friend bool operator==(const VectorFacts&, const VectorFacts&) = default;
};

// Facts for /info, /v1/models and limits; fixed once the engine is ready.
struct ModelFacts {
  std::string model_id;   // hub id or folder
  std::string model_sha;  // commit of the hub id; empty for a folder
  std::string served_name;
  std::string dtype;
  std::string device;
  std::string backend;  // of the shards, "cpu/avx512-bf16"
  std::uint32_t max_input_tokens = 0;
  std::uint32_t max_total_tokens = 0;
  std::uint32_t max_batch_total_tokens = 0;
  std::uint32_t vocabulary = 0;
  bool has_chat_template = false;
  bool template_has_tools = false;      // the chat template reads `tools`
  bool template_has_developer = false;  // it names the role `developer`
  // Optional features of the shards.
  bool has_grammar = false;
  bool has_watermark = false;
  bool has_adapters = false;
  bool any_adapter = false;                 // the shards take any name of an adapter
  std::uint32_t max_candidates = 0;         // of contrastive search; 0 = not offered
  std::optional<VectorFacts> vectors = {};  // absent: the model generates text
};

// A prefix that is kept for later requests of a tenant.
struct CachedPrompt {
  std::uint64_t id = 0;
  std::string tenant;
  std::string text;  // its beginning
  GroupId group;
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;
  std::uint64_t uses = 0;  // by requests that asked for it, the first one too
  Time last_used;
};

enum class Health : std::uint8_t { kStarting, kReady, kDraining, kFailed };

struct HealthReport {
  Health state = Health::kStarting;
  std::string detail;  // one line, e.g. which rank was lost
};

// Why a prompt read fewer blocks from the prefix cache than it has.
struct PrefixReason {
  enum class Kind : std::uint8_t {
    kShort,        // shorter than a block and a token
    kWhole,        // log-probabilities of the prompt need all its rows
    kNoRelative,   // no kept prompt begins like it
    kDifferent,    // it differs from the nearest one
    kEvicted,      // the nearest one's blocks were gone
    kHeld,         // they were in use, and not readable from its place
    kOtherTenant,  // the nearest one is another tenant's
  };
  Kind kind = Kind::kNoRelative;
  std::optional<RequestId> relative;  // the nearest earlier prompt
  std::string relative_client_id;
  std::string relative_tenant;
  std::uint32_t common_tokens = 0;
  // kDifferent, kOtherTenant: the text before the first token that differs, and after it in both.
  std::string before;
  std::string here;
  std::string there;
  // kEvicted: between these two.
  std::optional<Time> last_cached;
  Time missed;
};

// A request as GET /requests/{id} shows it.
struct RequestRecord {
  RequestId request;
  std::string tenant;
  std::string client_id;
  std::string state;  // preparing, queued, running, finished, cancelled, failed, refused
  std::uint32_t prompt_tokens = 0;
  std::uint32_t generated_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t preemptions = 0;
  std::uint32_t losses = 0;         // of its replica group
  std::vector<Decision> decisions;  // the newest ones, bounded
  Time arrived;
  std::optional<PrefixReason> prefix_miss = {};
  std::optional<LedgerView> ledger = {};
};

// What was computed for one slot in a step: prompt tokens, or decode rows.
struct StepPart {
  SlotId slot;
  std::uint32_t rows = 0;
  bool prompt = false;
};

struct StepView {
  GroupId group;
  StepId step;
  std::vector<StepPart> parts;
  std::uint32_t parts_left_out = 0;
  Duration predicted{0};  // by the cost model; 0 = unknown
  Duration taken{0};
};

// Steps, and the state after them. Only `queue` names requests; nothing holds their text.
struct StepReport {
  std::vector<StepView> steps;
  std::uint32_t steps_left_out = 0;
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::array<std::uint32_t, kBudgets> waiting_for{};  // waiting requests by recorded reason
  std::uint32_t blocks_free = 0;                      // of KV group 0
  std::uint32_t blocks_used = 0;
  std::uint32_t blocks_cached = 0;
  std::uint32_t blocks_retiring = 0;
  std::vector<WaitingView> queue = {};  // the oldest ones
  std::uint32_t queue_left_out = 0;
  TimeTotals last_hour{};  // of the requests that ended in it
};

// OnSteps is called by one thread at a time. It must not block. It returns false if the reader has
// left or is too slow, and is called no more. HasLeft may be called from any thread.
class StepSink {
 public:
  virtual ~StepSink() = default;
  virtual bool OnSteps(const StepReport& report) = 0;
  virtual bool HasLeft() const = 0;
};

// Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;

  // Takes the request; all outcomes, errors too, arrive at the sink. The id is known at once.
  virtual RequestId Submit(GenerationRequest request, std::shared_ptr<GenerationSink> sink) = 0;

  // A beam search with `request.beams`: one sink for each of its results, the best first. A grammar
  // and stop strings are not supported.
  virtual RequestId Search(GenerationRequest request,
                           std::vector<std::shared_ptr<GenerationSink>> sinks) = 0;

  // A chat as its template writes it, the tokens of a text, and the text of tokens with their
  // special ones. `done` is called once, on a thread of the text pool; it must not block. A call
  // into a stopped engine is dropped.
  virtual void Render(ChatInput chat, std::function<void(RenderedChat)> done) = 0;
  virtual void Tokenize(std::string text, TokenizeOptions options,
                        std::function<void(TokenizedText)> done) = 0;
  virtual void Detokenize(std::vector<TokenId> ids, std::function<void(DecodedTokens)> done) = 0;

  // Vectors of texts. `done` is called once, on any thread but not inside; it must not block. A
  // call into a stopped engine is dropped.
  virtual void Embed(EmbedJob, std::function<void(EmbedResult)> done) {
    done(GenerationError{ErrorKind::kValidation, "the model generates text and gives no vectors",
                         "model", std::nullopt});
  }

  // The client disconnected. After this, or after the sink has returned false, only events that
  // were already on their way are delivered. Unknown ids are ignored.
  virtual void Cancel(RequestId request) = 0;

  virtual ModelFacts Facts() const = 0;
  virtual HealthReport CheckHealth() const = 0;
  // The same, after a probe of the shards if they have not answered for long. `answer` is
  // called once, from any thread, perhaps inside; it must not block.
  virtual void ProbeHealth(std::function<void(const HealthReport&)> answer) {
    answer(CheckHealth());
  }

  // By client id or by the decimal request id. NotFound when unknown, forgotten or another
  // tenant's. `admin`: requests of all tenants.
  virtual absl::StatusOr<RequestRecord> Explain(const std::string& id, const std::string& tenant,
                                                bool admin = false) const = 0;

  // The client has the last byte of the answer, or will not take it.
  virtual void Delivered(RequestId, Time) {}
  // The time of an open request by kind.
  virtual std::optional<TimeTotals> Times(RequestId) const { return std::nullopt; }

  // Reports what each step computes, at most ten times a second. False: it has enough readers.
  virtual bool Watch(std::shared_ptr<StepSink>) { return false; }

  // LoRA adapters, by name. The calls of `done` may come from any thread, perhaps inside; it must
  // not block. Load: why the folder cannot be loaded. Unload: NotFound, or OK
  // once no running request uses it.
  using AdapterDone = std::function<void(absl::Status)>;
  virtual std::vector<AdapterInfo> Adapters() const { return {}; }
  virtual void LoadAdapter(AdapterFolder, AdapterDone done) {
    done(absl::UnimplementedError("adapters are not offered"));
  }
  virtual void UnloadAdapter(const std::string&, AdapterDone done) {
    done(absl::UnimplementedError("adapters are not offered"));
  }

  // Kept prefixes of a tenant, the most recently used first.
  virtual std::vector<CachedPrompt> CachedPrompts(const std::string&) const { return {}; }
  // Releases one of them, or all. Returns how many. What runs is not affected.
  virtual std::size_t ForgetCachedPrompts(const std::string&, std::optional<std::uint64_t>) {
    return 0;
  }
  // Releases all prefixes of a tenant: later prompts find none of its earlier ones.
  virtual void FlushPrefixes(const std::string&) {}
};

}  // namespace penstock::router
