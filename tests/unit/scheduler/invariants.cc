#include "tests/unit/scheduler/invariants.h"

#include <sstream>
#include <utility>

namespace penstock::scheduler {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

std::string Name(RequestId request) { return "request " + std::to_string(request.value()); }

}  // namespace

void Invariants::Check(const Input& input, const Outputs& out, const Snapshot& state) {
  NoteInput(input);
  // What a preempted request has still in flight comes before it starts again.
  for (const Event& event : out.events) CheckEvent(event);
  for (const Decision& decision : out.decisions) CheckDecision(decision);
  for (const PlanOut& plan : out.plans) NoteStarts(plan);
  CheckRetiring(input);
  if (out.plans.size() != out.steps.size()) return Complain("one StepInfo per plan");
  for (std::size_t i = 0; i < out.plans.size(); ++i) CheckPlan(out.plans[i], out.steps[i]);

  const std::uint32_t sum =
      state.blocks_free + state.blocks_used + state.blocks_cached + state.blocks_retiring;
  if (sum != state.blocks_total) Complain("G1: blocks are conserved");
  const bool group_up = state.blocks_total > 0;
  if (group_up && state.plans_in_flight == 0 && state.running + state.waiting > 0) {
    Complain("G4: runnable, but no plan is in flight");
  }
}

void Invariants::NoteStarts(const PlanOut& plan) {
  if (plan.requests.size() != plan.plan.starts.size()) Complain("a plan names whom it starts");
  for (std::size_t i = 0; i < plan.plan.starts.size(); ++i) {
    const SequenceStart& start = plan.plan.starts[i];
    if (!sequences_.emplace(start.sequence, plan.requests[i]).second) {
      Complain("G3: a sequence id is used twice");
    }
    group_of_[plan.requests[i]] = plan.group;
    const Request& request = requests_[plan.requests[i]];
    if (request.preempted && plan.plan.step >= request.preempted_at) {
      Complain("G8: a preempted request starts before it was queued again");
    }
    if (start.sample_index_base != request.tokens) Complain("G3: a restart goes on where it was");
  }
}

void Invariants::NoteInput(const Input& input) {
  std::visit(Overload{[this](const Arrival& a) {
                        Request request;
                        request.output = shard_options_.tokens.Output(a.prompt, a.max_new_tokens);
                        request.max_new_tokens = a.max_new_tokens;
                        request.prompt_logprobs = a.logprobs.prompt_logprobs;
                        requests_[a.request] = request;
                      },
                      [this](const Cancel& c) { requests_[c.request].cancelled = true; },
                      [this](const FinishAt& f) {
                        Request& request = requests_[f.request];
                        if (request.terminals == 0) request.finish_at.insert(f.token_count);
                      },
                      [this](const GroupUp& up) { epochs_[up.group] = up.epoch; },
                      [this](const GroupLost& lost) {
                        slots_.erase(lost.group);
                        std::erase_if(retiring_, [&lost](const auto& entry) {
                          return entry.second.group == lost.group;
                        });
                      },
                      [](const auto&) {}},
             input.what);
}

void Invariants::CheckEvent(const Event& event) {
  Request& request = requests_[event.request];
  if (request.terminals > 0) Complain("G2: " + Name(event.request) + " has an event after its end");
  std::visit(Overload{[](const Started&) {},
                      [this, &request](const PromptLogprobs& p) {
                        if (!request.prompt_logprobs) Complain("prompt logprobs nobody asked for");
                        for (std::size_t i = 0; i < p.logprobs.size(); ++i) {
                          if (p.logprobs[i] != -static_cast<float>(i + 1)) {
                            Complain("G3: prompt logprobs are gapless");
                          }
                        }
                      },
                      [this, &request](const Tokens& tokens) { CheckTokens(request, tokens); },
                      [this, &request](const Finished& finished) {
                        ++request.terminals;
                        CheckFinished(request, finished);
                      },
                      [&request](const Failed&) { ++request.terminals; }},
             event.what);
  if (request.terminals == 0) return;
  const auto group = group_of_.find(event.request);
  if (group != group_of_.end() && slots_.contains(group->second)) {
    retiring_[event.request] = {group->second, 0};
  }
}

void Invariants::CheckTokens(Request& request, const Tokens& tokens) {
  if (tokens.first_index != request.tokens) Complain("G3: committed positions are gapless");
  for (const SampledToken& token : tokens.tokens) {
    const std::uint32_t k = request.tokens++;
    if (k >= request.output.size() || token.token != request.output[k]) {
      Complain("G3: committed positions are in order");
    }
  }
}

void Invariants::CheckFinished(Request& request, const Finished& finished) {
  const bool eos = request.output.back() == sim::kEosToken;
  const std::uint32_t count = finished.generated_tokens;
  const auto expect = [this, count](bool right, const std::string& what) {
    if (!right) Complain("finish: " + what + " at " + std::to_string(count));
  };
  switch (finished.reason) {
    case FinishReason::kCancelled:
      return expect(request.cancelled, "cancelled without a cancel");
    case FinishReason::kStopString:
      return expect(request.finish_at.contains(count), "stop string elsewhere");
    case FinishReason::kLength:
      return expect(count == request.max_new_tokens && request.tokens == count, "length");
    case FinishReason::kEos:
    case FinishReason::kStopToken:
      return expect(eos && request.output.size() == count && request.tokens == count,
                    "end of sequence");
  }
}

void Invariants::CheckDecision(const Decision& decision) {
  Request& request = requests_[decision.request];
  if (decision.kind == DecisionKind::kRetired) retiring_.erase(decision.request);
  if (decision.kind == DecisionKind::kQueued && std::exchange(request.preempted, false)) {
    group_of_.erase(decision.request);
  }
  if (decision.kind != DecisionKind::kPreempted) return;
  if (config_.admission == Admission::kGuaranteed)
    Complain("G7: a guaranteed request is preempted");
  if (++request.preemptions > 3) Complain("G7: more than 3 preemptions");
  request.preempted = true;
  request.preempted_at = *decision.step;
  const auto group = group_of_.find(decision.request);
  if (group != group_of_.end()) retiring_[decision.request] = {group->second, 0};
}

void Invariants::CheckRetiring(const Input& input) {
  const auto* done = std::get_if<StepDone>(&input.what);
  if (done == nullptr || done->result.epoch != epochs_[done->group]) return;
  for (auto& [request, entry] : retiring_) {
    if (entry.group != done->group || ++entry.results < config_.pipeline_depth) continue;
    Complain("G8: " + Name(request) + " still holds blocks after pipeline_depth results");
  }
}

void Invariants::CheckPlan(const PlanOut& out, const StepInfo& info) {
  auto& slots = slots_[out.group];
  for (const SlotId slot : out.plan.ends) slots.erase(slot);
  for (const SequenceStart& start : out.plan.starts) slots[start.slot] = start.sequence;
  std::uint32_t rows = 0;
  std::uint32_t prefill = 0;
  for (const Segment& segment : out.plan.segments) {
    rows += segment.Rows();
    if (segment.kind == Segment::Kind::kPrompt) prefill += segment.count;
    const RequestId request = sequences_[slots[segment.slot]];
    if (requests_[request].preempted && out.plan.step >= requests_[request].preempted_at) {
      Complain("G8: a preempted sequence is in a plan");
    }
    if (requests_[request].terminals > 0) {
      Complain("G8: " + Name(request) + " is in a plan after its end");
    }
  }
  if (rows > config_.max_step_tokens) Complain("G5: a step exceeds its token budget");
  const std::uint32_t share = config_.max_batch_prefill_tokens;
  if (share > 0 && prefill > share) Complain("G5: a step exceeds its prefill share");
  if (info.prefill_tokens != prefill || info.decode_rows != rows - prefill ||
      info.sequences != out.plan.segments.size()) {
    Complain("StepInfo says what is in the plan");
  }
  if (out.plan.segments.empty() && out.plan.ends.empty()) Complain("a plan says something");
}

void Invariants::CheckEnd(const Snapshot& state) {
  for (const auto& [id, request] : requests_) {
    if (request.terminals != 1) Complain("G2: " + Name(id) + " has not exactly one terminal event");
  }
  if (state.blocks_free != state.blocks_total) Complain("G1: not all blocks are free at the end");
  if (state.running + state.waiting + state.retiring + state.plans_in_flight > 0) {
    Complain("G4: something is left at the end");
  }
}

std::string Describe(const Outputs& out) {
  std::ostringstream text;
  for (const PlanOut& p : out.plans) {
    text << "plan " << p.group.value() << ' ' << p.plan.epoch.value() << ' ' << p.plan.step.value()
         << " ends";
    for (const SlotId slot : p.plan.ends) text << ' ' << slot.value();
    text << " ops";
    for (const BlockOp& op : p.plan.block_ops)
      text << ' ' << op.slot.value() << ':' << op.dst.value();
    text << " starts";
    for (const SequenceStart& s : p.plan.starts) {
      text << ' ' << s.slot.value() << ':' << s.sequence.value() << ':' << s.prompt_length;
    }
    text << " segments";
    for (const Segment& s : p.plan.segments) {
      text << ' ' << static_cast<int>(s.kind) << ':' << s.slot.value() << ':' << s.first << ':'
           << s.Rows() << ':' << static_cast<int>(s.logits);
    }
    text << '\n';
  }
  for (const StepInfo& s : out.steps) {
    text << "step " << s.step.value() << ' ' << s.decode_rows << ' ' << s.prefill_tokens << ' '
         << s.sequences << ' ' << s.waiting << ' ' << s.blocks_free << ' ' << s.blocks_used << ' '
         << s.blocks_cached << ' ' << s.blocks_retiring << '\n';
  }
  for (const Event& e : out.events) {
    text << "event " << e.request.value() << ' ' << e.what.index();
    if (const auto* tokens = std::get_if<Tokens>(&e.what)) {
      for (const SampledToken& t : tokens->tokens) text << ' ' << t.token;
    } else if (const auto* end = std::get_if<Finished>(&e.what)) {
      text << ' ' << static_cast<int>(end->reason) << ' ' << end->generated_tokens;
    } else if (const auto* failed = std::get_if<Failed>(&e.what)) {
      text << ' ' << static_cast<int>(failed->kind) << ' ' << failed->message;
    }
    text << '\n';
  }
  for (const Decision& d : out.decisions) {
    text << "decision " << d.at.time_since_epoch().count() << ' ' << d.request.value() << ' '
         << static_cast<int>(d.kind) << ' ' << static_cast<int>(d.short_of) << ' ' << d.needed
         << ' ' << d.available << ' ' << d.behind.value_or(RequestId(0)).value() << ' '
         << d.step.value_or(StepId(0)).value() << '\n';
  }
  return text.str();
}

}  // namespace penstock::scheduler
