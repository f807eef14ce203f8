#include "scheduler/log/output_digest.h"

#include "scheduler/log/input_log_fields.h"
namespace penstock::scheduler {

PENSTOCK_FIELDS(BlockOp, a(v.kind, v.kv_group, v.slot, v.src, v.dst));
PENSTOCK_FIELDS(SequenceStart,
                a(v.slot, v.sequence, v.prompt, v.prompt_length, v.cached_length,
                  v.sample_index_base, v.sampling, v.logprobs, v.stop_token_ids, v.ignore_eos,
                  v.min_new_tokens, v.max_new_tokens, v.grammar, v.adapter_id, v.trace_id));
PENSTOCK_FIELDS(Segment, a(v.kind, v.slot, v.first, v.count, v.logits, v.max_rows));
PENSTOCK_FIELDS(SegmentGroup, a(v.segments));
PENSTOCK_FIELDS(StepPlan, a(v.epoch, v.step, v.ends, v.block_ops, v.starts, v.segments, v.groups));
PENSTOCK_FIELDS(PlanOut, a(v.group, v.plan, v.requests));
PENSTOCK_FIELDS(Started, a(v.prompt_tokens, v.cached_tokens));
PENSTOCK_FIELDS(Tokens, a(v.first_index, v.tokens));
PENSTOCK_FIELDS(PromptLogprobs, a(v.logprobs));
PENSTOCK_FIELDS(Finished, a(v.reason, v.generated_tokens));
PENSTOCK_FIELDS(Failed, a(v.kind, v.message));
PENSTOCK_FIELDS(Event, a(v.request, v.what));
PENSTOCK_FIELDS(Decision, a(v.at, v.request, v.kind, v.short_of, v.needed, v.available, v.behind,
                            v.group, v.step));
PENSTOCK_FIELDS(PrefixUse, a(v.looked_up_tokens, v.hit_tokens, v.evicted_blocks));
PENSTOCK_FIELDS(StepInfo, a(v.group, v.step, v.decode_rows, v.prefill_tokens, v.sequences,
                            v.waiting, v.blocks_free, v.blocks_used, v.blocks_cached,
                            v.blocks_retiring, v.predicted, v.prefix));
PENSTOCK_FIELDS(PinChange, a(v.group, v.kind, v.made_by, v.by, v.tokens, v.blocks));
PENSTOCK_FIELDS(Outputs, a(v.plans, v.steps, v.events, v.decisions, v.pins));

std::string EncodeOutputs(const Outputs& out) {
  ArchiveWriter writer;
  writer(out);
  return writer.Take();
}

std::uint64_t DigestOf(const Outputs& out) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : EncodeOutputs(out)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  return hash;
}

}  // namespace penstock::scheduler
