#include "scheduler/log/output_digest.h"

#include "scheduler/log/input_log_fields.h"
namespace penstock::scheduler {

PENSTOCK_ALL_FIELDS(BlockOp, kind, kv_group, slot, src, dst);
PENSTOCK_ALL_FIELDS(SequenceStart, slot, sequence, prompt, prompt_length, cached_length,
                    sample_index_base, sampling, logprobs, stop_token_ids, ignore_eos,
                    min_new_tokens, max_new_tokens, grammar, adapter_id, trace_id);
PENSTOCK_ALL_FIELDS(Segment, kind, slot, first, count, logits, max_rows);
PENSTOCK_ALL_FIELDS(SegmentGroup, segments, rows, width);
PENSTOCK_ALL_FIELDS(StepPlan, epoch, step, ends, block_ops, starts, segments, groups);
PENSTOCK_ALL_FIELDS(PlanOut, group, plan, requests);
PENSTOCK_ALL_FIELDS(Started, prompt_tokens, cached_tokens);
PENSTOCK_ALL_FIELDS(Tokens, first_index, tokens);
PENSTOCK_ALL_FIELDS(PromptLogprobs, logprobs, alternatives);
PENSTOCK_ALL_FIELDS(Finished, reason, generated_tokens);
PENSTOCK_ALL_FIELDS(Failed, kind, message);
PENSTOCK_ALL_FIELDS(Event, request, what);
PENSTOCK_ALL_FIELDS(Decision, at, request, kind, short_of, needed, available, behind, group, step);
PENSTOCK_ALL_FIELDS(PrefixUse, looked_up_tokens, hit_tokens, evicted_blocks);
PENSTOCK_ALL_FIELDS(StepInfo, group, step, decode_rows, prefill_tokens, sequences, waiting,
                    blocks_free, blocks_used, blocks_cached, blocks_retiring, window_blocks_free,
                    window_blocks_used, window_blocks_cached, window_blocks_retiring, predicted,
                    decode_parts, decode_cells, decode_tokens, resplit, prefix);
PENSTOCK_ALL_FIELDS(PinChange, group, kind, made_by, by, tokens, blocks);
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
