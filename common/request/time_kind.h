// What a request's time is spent on. Every instant from its arrival to the last byte of its answer
// is of one kind (docs/decisions/0052).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/request/decision.h"

namespace penstock {

enum class TimeKind : std::uint8_t {
  kUpload,        // the client sends the body
  kParse,         // from the last byte of the body until the engine has the request
  kTextQueue,     // for a thread of the text pool
  kTemplate,      // the chat template is rendered
  kTokenize,      // the prompt becomes tokens, and its lengths are checked
  kGrammar,       // the grammar is checked
  kMailbox,       // for the scheduler's thread
  kShardQueue,    // its step waits in the shard for an earlier one
  kPrefill,       // the shard computes a chunk of its prompt
  kRecompute,     // the same, after a preemption
  kDecode,        // the shard computes its next token
  kSharedDecode,  // the same, in a step with prompt tokens of others
  kGrammarMask,   // a step gave no token, because the mask of the grammar was not ready
  kBetweenSteps,  // it runs, and no step of it is in the shard: plans, the wire, other steps
  kPreempted,     // it waits to be computed again
  kSearch,        // a beam search, as a whole
  kText,          // its end becomes text and bytes
  kSocket,        // the client takes the rest of the answer
  kQueue,         // the first of kBudgets kinds: it waits for this budget
};
constexpr std::size_t kTimeKinds = static_cast<std::size_t>(TimeKind::kQueue) + kBudgets;

constexpr TimeKind QueueFor(Budget budget) {
  return static_cast<TimeKind>(static_cast<std::size_t>(TimeKind::kQueue) +
                               static_cast<std::size_t>(budget));
}

// Attributes of traces. What stands after the last point is the name elsewhere.
inline constexpr std::array<std::string_view, kTimeKinds> kTimeAttributes = {
    "penstock.time_ms.upload",
    "penstock.time_ms.parse",
    "penstock.time_ms.text_queue",
    "penstock.time_ms.template",
    "penstock.time_ms.tokenize",
    "penstock.time_ms.grammar",
    "penstock.time_ms.mailbox",
    "penstock.time_ms.shard_queue",
    "penstock.time_ms.prefill",
    "penstock.time_ms.recompute",
    "penstock.time_ms.decode",
    "penstock.time_ms.shared_decode",
    "penstock.time_ms.grammar_mask",
    "penstock.time_ms.between_steps",
    "penstock.time_ms.preempted",
    "penstock.time_ms.search",
    "penstock.time_ms.text",
    "penstock.time_ms.socket",
    // In the order of Budget.
    "penstock.time_ms.queue_not_examined",
    "penstock.time_ms.queue_step_tokens",
    "penstock.time_ms.queue_prefill_tokens",
    "penstock.time_ms.queue_total_tokens",
    "penstock.time_ms.queue_blocks",
    "penstock.time_ms.queue_slots",
    "penstock.time_ms.queue_batch_size",
    "penstock.time_ms.queue_queue",
    "penstock.time_ms.queue_order",
    "penstock.time_ms.queue_group",
    "penstock.time_ms.queue_step_time",
    "penstock.time_ms.queue_prefix",
    "penstock.time_ms.queue_join_size",
    "penstock.time_ms.queue_cells",
    "penstock.time_ms.queue_original_length",
    "penstock.time_ms.queue_alone",
};

constexpr std::string_view TimeAttribute(TimeKind kind) {
  return kTimeAttributes[static_cast<std::size_t>(kind)];
}
constexpr std::string_view TimeKindName(TimeKind kind) {
  const std::string_view attribute = TimeAttribute(kind);
  return attribute.substr(attribute.rfind('.') + 1);
}

}  // namespace penstock
