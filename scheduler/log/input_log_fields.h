// The fields of everything in an input log. A change here needs a new kVersion in input_log.cc.
#pragma once

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/log/input_archive.h"

namespace penstock::scheduler {

PENSTOCK_FIELDS(Config,
                a(v.max_step_tokens, v.max_batch_prefill_tokens, v.max_batch_total_tokens,
                  v.max_batch_size, v.max_waiting_requests, v.pipeline_depth, v.max_decode_rows,
                  v.batching, v.static_grouping, v.prefill, v.admission, v.order, v.prefix_caching,
                  v.placement, v.placement_load_permille, v.max_overtakes, v.starvation_steps,
                  v.starvation_quantum, v.waiting_served_permille, v.max_waiting_tokens,
                  v.target_inter_token, v.split, v.max_splits, v.max_sparsity_ppm,
                  v.pinned_prefixes, v.pinned_blocks, v.recovery_timeout));

PENSTOCK_FIELDS(SamplingParams::LogitBias, a(v.token, v.bias));
PENSTOCK_FIELDS(SamplingParams,
                a(v.do_sample, v.temperature, v.top_k, v.top_p, v.typical_p, v.min_p,
                  v.repetition_penalty, v.frequency_penalty, v.presence_penalty, v.seed, v.sibling,
                  v.logit_bias, v.watermark, v.penalty_alpha, v.top_n_sigma, v.bad_words));
PENSTOCK_FIELDS(GrammarSpec, a(v.kind, v.source));
PENSTOCK_FIELDS(LogprobRequest, a(v.kind, v.top_n, v.prompt_logprobs, v.prompt_top_n));
PENSTOCK_FIELDS(Arrival,
                a(v.request, v.prompt, v.max_new_tokens, v.length_given, v.request_class,
                  v.predicted_tokens, v.ranked_tokens, v.min_new_tokens, v.sampling, v.logprobs,
                  v.stop_token_ids, v.ignore_eos, v.priority, v.grammar, v.tenant, v.adapter_id,
                  v.trace_id, v.pinned_tokens, v.account, v.weight));
PENSTOCK_FIELDS(Cancel, a(v.request));
PENSTOCK_FIELDS(FinishAt, a(v.request, v.token_count));

PENSTOCK_FIELDS(TokenLogprob, a(v.token, v.logprob));
PENSTOCK_FIELDS(PromptAlternatives, a(v.rank, v.top));
PENSTOCK_FIELDS(SampledToken, a(v.token, v.logprob, v.alternatives, v.forced));
PENSTOCK_FIELDS(SequenceResult, a(v.slot, v.sequence, v.tokens, v.committed_length, v.finish,
                                  v.error, v.prompt_logprobs, v.prompt_alternatives));
PENSTOCK_FIELDS(StepTimings, a(v.queued, v.forward, v.sample));
PENSTOCK_FIELDS(CellUse, a(v.allocated, v.filled, v.copied));
PENSTOCK_FIELDS(StepResult,
                a(v.epoch, v.step, v.digest, v.sequences, v.timings, v.memory_bytes, v.cells));
PENSTOCK_FIELDS(StepDone, a(v.group, v.result));

PENSTOCK_FIELDS(GroupCapacity,
                a(v.blocks, v.block_size, v.slots, v.max_sequence_length, v.max_step_tokens,
                  v.padded_attention, v.window, v.window_blocks, v.shares_blocks, v.max_candidates,
                  v.cells, v.length_rule, v.original_length, v.snapshots, v.forced_tokens));
PENSTOCK_FIELDS(StepTimeSample, a(v.prefill_tokens, v.decode_rows, v.context_tokens, v.time));
PENSTOCK_FIELDS(Calibration, a(v.samples));
PENSTOCK_FIELDS(GroupUp, a(v.group, v.epoch, v.capacity, v.calibration, v.arithmetic_class));
PENSTOCK_FIELDS(GroupLost, a(v.group, v.epoch, v.reason, v.in_order));
PENSTOCK_FIELDS(ForgetPrefixes, a(v.tenant, v.made_by));
PENSTOCK_FIELDS(Drain, (void)a, (void)v);
PENSTOCK_FIELDS(Tick, (void)a, (void)v);

PENSTOCK_FIELDS(Input, a(v.now, v.what));

}  // namespace penstock::scheduler
