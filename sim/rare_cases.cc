#include "sim/rare_cases.h"

#include <algorithm>
#include <cstdint>
#include <variant>

namespace penstock::sim {
namespace {

template <class Change>
void ForEachClient(Scenario& scenario, const Change& change) {
  for (TimedEvent& event : scenario.script) {
    if (auto* client = std::get_if<ClientArrives>(&event.what)) change(*client);
  }
}

// TGI's admission rule with short prompts, of which several fit into a step, and few places.
void DrawJoining(Random& random, Scenario& scenario) {
  if (!random.OneIn(10)) return;
  scheduler::Config config = scenario.config;
  config.prefill = scheduler::Prefill::kWhole;
  config.batching = scheduler::Batching::kContinuous;
  config.max_batch_size = random.Between(3, 8);
  config.max_batch_prefill_tokens = random.OneIn(2) ? random.Between(12, 40) : 0;
  config.max_step_tokens = random.Between(30, 60);
  config.waiting_served_permille = random.Between(500, 1500);
  config.max_waiting_tokens = random.Between(4, 30);
  if (WhyInvalid(config)) return;
  scenario.config = config;
  for (GroupCapacity& group : scenario.groups) {
    group.max_step_tokens = config.max_step_tokens;
    group.slots = random.Between(6, 12);
  }
  ForEachClient(scenario, [&random](ClientArrives& client) {
    client.arrival.prompt.resize(std::min<std::size_t>(client.arrival.prompt.size(), 8));
    client.arrival.max_new_tokens = std::max(client.arrival.max_new_tokens, random.Between(1, 12));
  });
}

// Prompt logprobs in many requests, also of prompts in the prefix cache.
void DrawPromptLogprobs(Random& random, Scenario& scenario) {
  if (!random.OneIn(5)) return;
  ForEachClient(scenario, [&random](ClientArrives& client) {
    LogprobRequest& logprobs = client.arrival.logprobs;
    logprobs.prompt_logprobs = !random.OneIn(3);
    if (logprobs.prompt_logprobs && random.OneIn(2)) logprobs.prompt_top_n = random.Below(3);
  });
}

// Long prompts where outputs exceed their forecasts: preemptions before the first token.
void DrawLongPrompts(Random& random, Scenario& scenario) {
  if (!random.OneIn(4)) return;
  scheduler::Config& config = scenario.config;
  if (config.prefill == scheduler::Prefill::kChunked) {
    config.max_batch_prefill_tokens = random.Between(2, 8);
  }
  ForEachClient(scenario, [&random](ClientArrives& client) {
    auto& prompt = client.arrival.prompt;
    if (prompt.size() > 12 || random.OneIn(2)) return;
    const std::uint64_t text = random.Below(3);
    for (std::uint32_t more = random.Between(4, 20); more > 0; --more) {
      prompt.push_back(static_cast<TokenId>(10 + Mix(text, prompt.size()) % 1000));
    }
  });
}

// More plans in flight where sequences may be preempted: their blocks come back late.
void DrawDeepPipeline(Random& random, Scenario& scenario) {
  scheduler::Config config = scenario.config;
  if (config.admission == scheduler::AdmissionMode::kGuaranteed || !random.OneIn(3)) return;
  config.pipeline_depth = random.Between(3, 5);
  if (!WhyInvalid(config)) scenario.config = config;
}

// Settings of sampling, which the core hands on.
void DrawSampling(Random& random, Scenario& scenario) {
  if (!random.OneIn(4)) return;
  ForEachClient(scenario, [&random](ClientArrives& client) {
    SamplingParams& sampling = client.arrival.sampling;
    if (!random.OneIn(4) || sampling.Candidates() > 0) return;
    const auto part = [&random] { return static_cast<float>(random.Between(1, 15)) / 16; };
    sampling.do_sample = random.OneIn(2);
    sampling.temperature = part();
    sampling.top_k = random.Below(5);
    sampling.top_p = part();
    sampling.typical_p = part();
    sampling.min_p = part();
    sampling.top_n_sigma = part();
    sampling.repetition_penalty = 1 + part();
    sampling.frequency_penalty = part();
    sampling.presence_penalty = -part();
    sampling.sibling = random.Below(4);
    sampling.logit_bias = {{static_cast<TokenId>(random.Below(1000)), part()}};
    if (random.OneIn(3)) sampling.bad_words = {{1, 2}, {static_cast<TokenId>(random.Below(1000))}};
    sampling.watermark = random.OneIn(2);
    client.arrival.logprobs.top_n = random.Below(4);
    if (random.OneIn(3)) client.arrival.grammar = {GrammarSpec::Kind::kLark, "start: \"a\"*"};
  });
}

// Many preemptions: outputs exceed their forecasts in small pools. Prompts take several steps, and
// in static batches some restarts wait for the steps that compute others. So clients end requests
// with output that no plan in flight names. Some texts pass the original length after preemptions.
void DrawRestarts(Random& random, Scenario& scenario) {
  if (!random.OneIn(8)) return;
  scheduler::Config config = scenario.config;
  config.admission = scheduler::AdmissionMode::kOptimistic;
  config.prefill = scheduler::Prefill::kChunked;
  config.batching =
      random.OneIn(2) ? scheduler::Batching::kStatic : scheduler::Batching::kContinuous;
  config.static_grouping = scheduler::StaticGrouping::kWindow;
  config.max_batch_size = config.max_batch_total_tokens = 0;
  config.max_batch_prefill_tokens = random.Between(2, 8);
  if (WhyInvalid(config)) return;
  scenario.config = config;
  scenario.ends_unnamed = true;
  const bool recomputes = random.OneIn(2);
  const std::uint32_t original = random.Between(12, 30);
  for (GroupCapacity& group : scenario.groups) {
    const std::uint32_t longest = group.max_sequence_length / group.block_size + 1;
    group.blocks = random.Between(longest, longest + longest / 4);
    group.slots = random.Between(4, 10);
    if (!recomputes) continue;
    group.length_rule = LengthRule::kRecompute;
    group.original_length = original;
  }
  ForEachClient(scenario, [&random](ClientArrives& client) {
    auto& arrival = client.arrival;
    arrival.prompt.resize(std::min<std::size_t>(arrival.prompt.size(), 12));
    arrival.predicted_tokens = 1;
    arrival.max_new_tokens = std::max(arrival.max_new_tokens, random.Between(8, 30));
  });
}

}  // namespace

void DrawRareCases(Random& random, Scenario& scenario) {
  DrawJoining(random, scenario);
  DrawPromptLogprobs(random, scenario);
  DrawLongPrompts(random, scenario);
  DrawDeepPipeline(random, scenario);
  DrawSampling(random, scenario);
  scenario.ends_unnamed = random.OneIn(2);
  DrawRestarts(random, scenario);
}

}  // namespace penstock::sim
