#include "sim/describe.h"

#include <sstream>
#include <variant>

namespace penstock::sim {
namespace {

using namespace scheduler;  // NOLINT: every kind of input and output is named here

const char* const kFinishes[] = {"eos", "length", "stop token", "stop string", "cancelled"};
const char* const kFailures[] = {"queue full", "too large", "draining", "group lost",
                                 "shard error"};
const char* const kDecisions[] = {"queued",    "admitted", "deferred", "chunked", "split",
                                  "preempted", "refused",  "retired",  "finished"};
const char* const kShardFinishes[] = {"", " eos", " length", " stop token", " error"};

template <class Names>
const char* NameOf(const Names& names, std::size_t index) {
  return index < std::size(names) ? names[index] : "?";
}

class Text {
 public:
  void operator()(const Arrival& a) {
    text_ << "arrival of request " << a.request.value() << ": " << a.prompt.size()
          << " prompt tokens, at most " << a.max_new_tokens << " new, priority " << a.priority
          << (a.tenant.empty() ? "" : ", tenant " + a.tenant)
          << (a.adapter_id.empty() ? "" : ", adapter " + a.adapter_id);
    if (a.pinned_tokens > 0) text_ << ", keep " << a.pinned_tokens;
  }
  void operator()(const Cancel& c) { text_ << "cancel of request " << c.request.value(); }
  void operator()(const FinishAt& f) {
    text_ << "stop string of request " << f.request.value() << " at token " << f.token_count;
  }
  void operator()(const StepDone& d) {
    text_ << "result of step " << d.result.step.value() << ", group " << d.group.value()
          << ", epoch " << d.result.epoch.value() << ":";
    for (const SequenceResult& s : d.result.sequences) {
      text_ << " [sequence " << s.sequence.value() << ":";
      for (const SampledToken& t : s.tokens) text_ << ' ' << t.token;
      text_ << NameOf(kShardFinishes, static_cast<std::size_t>(s.finish)) << ']';
    }
  }
  void operator()(const GroupUp& up) {
    text_ << "group " << up.group.value() << " is up, epoch " << up.epoch.value() << ": "
          << up.capacity.blocks << " blocks of " << up.capacity.block_size << ", "
          << up.capacity.window_blocks << " of a window of " << up.capacity.window << ", "
          << up.capacity.cells << " cells, " << up.capacity.snapshots << " snapshots, "
          << up.capacity.slots << " slots, sequences up to " << up.capacity.max_sequence_length
          << ", steps up to " << up.capacity.max_step_tokens << ", " << up.capacity.forced_tokens
          << " forced tokens";
  }
  void operator()(const GroupLost& lost) {
    text_ << "group " << lost.group.value() << " is lost, epoch " << lost.epoch.value() << ": "
          << lost.reason;
  }
  void operator()(const ForgetPrefixes& f) {
    text_ << "forget kept prefixes of tenant \"" << f.tenant << '"';
    if (f.made_by) text_ << " that request " << f.made_by->value() << " made";
  }
  void operator()(const Drain&) { text_ << "drain"; }
  void operator()(const scheduler::Tick&) { text_ << "the time has passed"; }

  void operator()(const Started& s) {
    text_ << "starts, " << s.cached_tokens << " of " << s.prompt_tokens << " cached";
  }
  void operator()(const PromptLogprobs& p) { text_ << p.logprobs.size() << " prompt logprobs"; }
  void operator()(const Tokens& tokens) {
    text_ << "tokens from " << tokens.first_index << ":";
    for (const SampledToken& t : tokens.tokens) text_ << ' ' << t.token;
  }
  void operator()(const Finished& f) {
    text_ << "finished by " << NameOf(kFinishes, static_cast<std::size_t>(f.reason)) << " with "
          << f.generated_tokens << " tokens";
  }
  void operator()(const Failed& f) {
    text_ << "failed: " << NameOf(kFailures, static_cast<std::size_t>(f.kind)) << ": " << f.message;
  }

  void Plan(const PlanOut& out) {
    text_ << "plan of step " << out.plan.step.value() << ", group " << out.group.value() << ":";
    for (const SlotId slot : out.plan.ends) text_ << " end " << slot.value();
    for (std::size_t i = 0; i < out.plan.starts.size(); ++i) {
      const SequenceStart& s = out.plan.starts[i];
      text_ << " start " << s.slot.value() << " = sequence " << s.sequence.value();
      if (i < out.requests.size()) text_ << " of request " << out.requests[i].value();
      if (s.cached_length > 0) text_ << " with " << s.cached_length << " cached";
      text_ << ';';
    }
    for (const BlockOp& op : out.plan.block_ops) {
      if (op.kind == BlockOp::Kind::kCopy) text_ << " copy " << op.src.value() << " to";
      if (IsOfState(op.kind)) {
        const bool save = op.kind == BlockOp::Kind::kSaveState;
        text_ << (save ? " save " : " restore ") << op.slot.value() << ": snapshot "
              << (save ? op.dst : op.src).value() << ';';
        continue;
      }
      text_ << " block " << op.dst.value() << " -> " << op.slot.value() << ';';
    }
    for (const Segment& s : out.plan.segments) {
      if (s.kind == Segment::Kind::kDecode) {
        text_ << " decode " << s.slot.value() << " x" << s.max_rows << ';';
      } else {
        text_ << " prompt " << s.slot.value() << " [" << s.first << ", " << s.first + s.count
              << ");";
      }
    }
    text_ << '\n';
  }
  void Said(const Event& event) {
    text_ << "request " << event.request.value() << ' ';
    std::visit(*this, event.what);
    text_ << '\n';
  }
  void Decided(const Decision& d) {
    text_ << "decision: request " << d.request.value() << ' '
          << NameOf(kDecisions, static_cast<std::size_t>(d.kind)) << ", budget "
          << static_cast<int>(d.short_of) << " needs " << d.needed << " has " << d.available;
    if (d.behind) text_ << ", behind " << d.behind->value();
    if (d.group) text_ << ", group " << d.group->value();
    if (d.step) text_ << ", step " << d.step->value();
    text_ << '\n';
  }

  std::ostringstream& stream() { return text_; }
  std::string Take() { return text_.str(); }

 private:
  std::ostringstream text_;
};

}  // namespace

std::string Describe(const Config& config) {
  Text text;
  text.stream() << "max_step_tokens " << config.max_step_tokens << ", max_batch_prefill_tokens "
                << config.max_batch_prefill_tokens << ", max_batch_total_tokens "
                << config.max_batch_total_tokens << ", max_batch_size " << config.max_batch_size
                << ", max_waiting_requests " << config.max_waiting_requests << ", pipeline_depth "
                << config.pipeline_depth << ", max_decode_rows " << config.max_decode_rows
                << ", batching " << static_cast<int>(config.batching) << ", prefill "
                << static_cast<int>(config.prefill) << ", admission "
                << static_cast<int>(config.admission) << ", order "
                << static_cast<int>(config.order) << ", max_overtakes " << config.max_overtakes
                << ", starvation_steps " << config.starvation_steps << ", starvation_quantum "
                << config.starvation_quantum;
  return text.Take();
}

std::string Describe(const Input& input) {
  Text text;
  text.stream() << input.now.time_since_epoch().count() << " ns: ";
  std::visit(text, input.what);
  return text.Take();
}

std::string Describe(const Outputs& out) {
  Text text;
  for (const Event& event : out.events) text.Said(event);
  for (const Decision& decision : out.decisions) text.Decided(decision);
  for (const PlanOut& plan : out.plans) text.Plan(plan);
  return text.Take();
}

}  // namespace penstock::sim
