// What the handlers of all dialects share.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/answer/format.h"
#include "router/answer/special_tokens.h"
#include "router/api/dialect_set.h"
#include "router/api/keys.h"
#include "router/api/permits.h"
#include "router/api/retry_advice.h"
#include "router/api/tenant_gate.h"
#include "router/engine.h"
#include "router/metrics/metrics.h"
#include "router/telemetry/span.h"

namespace penstock::router {

// Defaults are those of the options table.
struct ApiOptions {
  std::shared_ptr<const KeyRing> keys;  // null or without a key: none is asked for
  std::string version = "0.1.0";
  std::uint32_t max_concurrent_requests = 128;
  std::uint32_t max_best_of = 2;  // also the cap of OpenAI's n
  std::uint32_t max_stop_sequences = 4;
  std::uint32_t max_top_n_tokens = 5;
  std::uint32_t max_client_batch_size = 4;
  std::uint32_t max_embed_batch_size = 2048;
  std::uint32_t validation_workers = 2;      // shown by /info only
  std::string compute_type;                  // x-compute-type; empty: the model's device
  bool grammar = true;                       // where the shards offer it
  bool strict_json = false;                  // unknown keys of bodies are refused
  bool trust_request_chat_template = false;  // bodies of chats may bring a template
  std::uint64_t max_request_cost = 0;        // see request_cost.h; 0: no limit
  Duration request_timeout{0};               // of every answer; 0: none
  Duration max_queue_wait{0};                // predicted; 0: no limit
  std::string admin_key_name;                // reads records of every tenant; empty: none does
  bool IsAdmin(std::string_view tenant) const {
    return !tenant.empty() && tenant == admin_key_name;
  }
  std::vector<std::string> cors_origins;  // empty: no CORS headers; "*": all
  std::vector<std::string> cors_headers;  // request headers allowed beside CorsRules
  std::shared_ptr<SpanSink> spans;        // null: nothing is traced
  const answer::Format* answer_format = &answer::NoFormat();  // of tool calls and reasoning
  answer::SpecialTokens special_tokens;                       // in the markers of the format
  bool reasons = false;  // the chat template shows the format's markers of reasoning
  // Why no shard accepts a connection, with the text of TGI's router; nothing if one does. Called
  // from any thread. Null: TGI's routes say why the engine refused instead.
  std::function<std::optional<std::string>()> connect_error;
};

// Outlives all requests. Options and dialects are fixed; the rest is thread-safe.
struct ApiContext {
  ApiContext(ApiOptions o, DialectSet d, Engine& e, Metrics& m)
      : options(std::move(o)),
        dialects(std::move(d)),
        engine(e),
        metrics(m),
        permits(options.max_concurrent_requests),
        gate(options.max_concurrent_requests),
        started(std::time(nullptr)) {}

  const ApiOptions options;
  const DialectSet dialects;
  Engine& engine;
  Metrics& metrics;
  Permits permits;
  TenantGate gate;
  RetryAdvice retry_advice;
  const std::int64_t started;  // seconds since 1970
};

}  // namespace penstock::router
