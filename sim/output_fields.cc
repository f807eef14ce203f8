#include "sim/output_fields.h"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

namespace penstock::sim {
namespace {

using scheduler::Event;
using scheduler::Failed;
using scheduler::Finished;
using scheduler::Outputs;
using scheduler::PinChange;
using scheduler::PlanOut;
using scheduler::PrefixUse;
using scheduler::PromptLogprobs;
using scheduler::Started;
using scheduler::StepInfo;
using scheduler::Tokens;

template <class T>
concept IsList = requires(T list) {
  list.emplace_back();
  list.pop_back();
};

class Walk {
 public:
  explicit Walk(std::optional<std::size_t> changed) : changed_(changed) {}

  std::size_t seen() const { return seen_; }

  template <class... T>
  void All(T&... values) {
    (Visit(values), ...);
  }

 private:
  bool Here() { return seen_++ == changed_; }

  template <class T>
  void Visit(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (Here()) value = !value;
    } else if constexpr (std::is_enum_v<T>) {
      if (Here()) value = static_cast<T>(static_cast<std::uint64_t>(value) ^ 1);
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (Here()) value = static_cast<T>(value + 1);
    } else {
      Fields(value);
    }
  }
  template <class Tag, class Rep>
  void Visit(Id<Tag, Rep>& id) {
    if (Here()) id = Id<Tag, Rep>(id.value() ^ 1);
  }
  void Visit(Time& time) {
    if (Here()) time += Duration(1);
  }
  void Visit(Duration& duration) {
    if (Here()) duration += Duration(1);
  }
  void Visit(std::string& text) {
    if (Here()) text += 'x';
  }
  template <IsList List>
  void Visit(List& list) {
    for (auto& item : list) Visit(item);
    if (Here()) list.emplace_back();
  }
  template <class T>
  void Visit(std::optional<T>& maybe) {
    if (maybe) Visit(*maybe);
    if (!Here()) return;
    if (maybe) {
      maybe.reset();
    } else {
      maybe.emplace();
    }
  }
  void Visit(decltype(Event::what)& what) {
    std::visit([this](auto& each) { Visit(each); }, what);
    if (!Here()) return;
    if (what.index() == 0) {
      what.emplace<Finished>();
    } else {
      what.emplace<Started>();
    }
  }

  void Fields(BlockOp& v) {
    auto& [kind, kv_group, slot, src, dst] = v;
    All(kind, kv_group, slot, src, dst);
  }
  void Fields(SamplingParams::LogitBias& v) {
    auto& [token, bias] = v;
    All(token, bias);
  }
  void Fields(SamplingParams& v) {
    auto& [sample, temperature, top_k, top_p, typical_p, min_p, sigma, repetition, frequency,
           presence, seed, sibling, logit_bias, bad_words, watermark, alpha] = v;
    All(sample, temperature, top_k, top_p, typical_p, min_p, sigma, repetition, frequency, presence,
        seed, sibling, logit_bias, bad_words, watermark, alpha);
  }
  void Fields(LogprobRequest& v) {
    auto& [kind, top_n, prompt, prompt_top_n] = v;
    All(kind, top_n, prompt, prompt_top_n);
  }
  void Fields(GrammarSpec& v) {
    auto& [kind, source] = v;
    All(kind, source);
  }
  void Fields(SequenceStart& v) {
    auto& [slot, sequence, prompt, length, cached, base, sampling, logprobs, stop_ids, ignore_eos,
           min_new, max_new, grammar, adapter, trace] = v;
    All(slot, sequence, prompt, length, cached, base, sampling, logprobs, stop_ids, ignore_eos,
        min_new, max_new, grammar, adapter, trace);
  }
  void Fields(Segment& v) {
    auto& [kind, slot, first, count, logits, max_rows] = v;
    All(kind, slot, first, count, logits, max_rows);
  }
  void Fields(SegmentGroup& v) {
    auto& [segments, rows, width] = v;
    All(segments, rows, width);
  }
  void Fields(StepPlan& v) {
    auto& [epoch, step, ends, block_ops, starts, segments, groups] = v;
    All(epoch, step, ends, block_ops, starts, segments, groups);
  }
  void Fields(PlanOut& v) {
    auto& [group, plan, requests] = v;
    All(group, plan, requests);
  }
  void Fields(Started& v) {
    auto& [prompt, cached] = v;
    All(prompt, cached);
  }
  void Fields(PromptAlternatives& v) {
    auto& [rank, top] = v;
    All(rank, top);
  }
  void Fields(PromptLogprobs& v) {
    auto& [logprobs, alternatives] = v;
    All(logprobs, alternatives);
  }
  void Fields(TokenLogprob& v) {
    auto& [token, logprob] = v;
    All(token, logprob);
  }
  void Fields(SampledToken& v) {
    auto& [token, logprob, alternatives, forced] = v;
    All(token, logprob, alternatives, forced);
  }
  void Fields(Tokens& v) {
    auto& [first, tokens] = v;
    All(first, tokens);
  }
  void Fields(Finished& v) {
    auto& [reason, tokens] = v;
    All(reason, tokens);
  }
  void Fields(Failed& v) {
    auto& [kind, message] = v;
    All(kind, message);
  }
  void Fields(Event& v) {
    auto& [request, what] = v;
    All(request, what);
  }
  void Fields(Decision& v) {
    auto& [at, request, kind, short_of, needed, available, behind, group, step] = v;
    All(at, request, kind, short_of, needed, available, behind, group, step);
  }
  void Fields(PrefixUse& v) {
    auto& [looked_up, hit, evicted] = v;
    All(looked_up, hit, evicted);
  }
  void Fields(StepInfo& v) {
    auto& [group, step, decode_rows, prefill, sequences, waiting, free, used, cached, retiring,
           window_free, window_used, window_cached, window_retiring, predicted, parts, cells,
           tokens, resplit, prefix] = v;
    All(group, step, decode_rows, prefill, sequences, waiting, free, used, cached, retiring,
        window_free, window_used, window_cached, window_retiring, predicted, parts, cells, tokens,
        resplit, prefix);
  }
  void Fields(PinChange& v) {
    auto& [group, kind, made_by, by, tokens, blocks] = v;
    All(group, kind, made_by, by, tokens, blocks);
  }

  const std::optional<std::size_t> changed_;
  std::size_t seen_ = 0;
};

std::size_t WalkAll(Outputs& out, std::optional<std::size_t> changed) {
  Walk walk(changed);
  walk.All(out.plans, out.steps, out.events, out.decisions, out.pins);
  return walk.seen();
}

}  // namespace

std::size_t CountFields(Outputs& out) { return WalkAll(out, std::nullopt); }

void ChangeField(Outputs& out, std::size_t field) { WalkAll(out, field); }

}  // namespace penstock::sim
