#include "sim/special_loads.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "sim/random.h"

namespace penstock::sim {
namespace {

using scheduler::AdmissionMode;
using scheduler::Batching;
using scheduler::Config;
using scheduler::Prefill;

constexpr Duration kMoment{1000};

void Arrive(Scenario& scenario, Time at, ClientArrives client) {
  TimedEvent& event = scenario.script.emplace_back();
  event.at = at;
  event.what = std::move(client);
}

std::vector<TokenId> Words(std::uint64_t source, std::uint32_t length) {
  std::vector<TokenId> text(length);
  for (std::uint32_t p = 0; p < length; ++p) {
    text[p] = static_cast<TokenId>(10 + Mix(source, p) % 1000);
  }
  return text;
}

std::uint32_t ShortestLimit(const Scenario& scenario) {
  return std::ranges::min_element(scenario.groups, {}, &GroupCapacity::max_sequence_length)
      ->max_sequence_length;
}

// One more request with the first `length` tokens of the text, and one or two of its own, so that
// the last full block is often one that others have.
ClientArrives Sharer(Random& random, RequestId id, std::uint64_t text, std::uint32_t length) {
  ClientArrives client;
  client.arrival.request = id;
  client.arrival.prompt = Words(text, length);
  for (std::uint32_t own = random.Between(1, 2); own > 0; --own) {
    client.arrival.prompt.push_back(static_cast<TokenId>(10 + random.Below(1000)));
  }
  client.arrival.max_new_tokens = random.Between(1, 8);
  client.arrival.logprobs.prompt_logprobs = random.OneIn(8);
  client.arrival.sampling.seed = random.Next();
  return client;
}

// Long outputs without a given length: the pool holds one or two of the longest texts.
void AllowLongTexts(Random& random, Scenario& scenario) {
  const std::uint32_t size = 16u << random.Below(3);
  const std::uint32_t longest = random.Between(400, 4000);
  for (GroupCapacity& group : scenario.groups) {
    group.block_size = size;
    group.max_sequence_length = longest;
    const std::uint32_t blocks = longest / size + 1;
    group.blocks = random.Between(blocks, 2 * blocks);
  }
}

void AllowGivenLengths(Random& random, Scenario& scenario) {
  for (GroupCapacity& group : scenario.groups) {
    group.max_sequence_length = 120;
    const std::uint32_t longest = 120 / group.block_size + 1;
    group.blocks = random.Between(longest, 2 * longest);
  }
}

}  // namespace

void DrawSharedStarts(Scenario& scenario) {
  Random random(Mix(scenario.seed, 90));
  if (!random.OneIn(6)) return;
  Config config = scenario.config;
  config.prefix_caching = true;
  config.batching = Batching::kContinuous;
  config.prefill = Prefill::kChunked;
  config.max_batch_prefill_tokens = random.Between(2, 6);
  if (WhyInvalid(config)) return;
  scenario.config = config;
  const bool recurrent = !random.OneIn(3);
  const bool few = random.OneIn(2);
  for (GroupCapacity& group : scenario.groups) {
    group.shares_blocks = true;
    if (recurrent && group.cells == 0) group.snapshots = random.Between(1, few ? 2 : 8);
  }
  const std::uint32_t longest = std::min(ShortestLimit(scenario) - 10, few ? 10u : 40u);
  std::uint64_t id = 12000;
  for (std::uint32_t texts = random.Between(2, 5); texts > 0; --texts) {
    const std::uint64_t text = random.Next();
    const std::uint32_t length = random.Between(longest / 2, longest);
    const std::uint32_t steps = length / config.max_batch_prefill_tokens + 2;
    const Duration whole = (scenario.step_base + kMoment) * steps;
    Time at{kMoment * random.Below(300)};
    for (std::uint32_t sharers = random.Between(3, 6); sharers > 0; --sharers) {
      const std::uint32_t shared = random.OneIn(3) ? random.Between(1, length) : length;
      const RequestId request{++id};
      Arrive(scenario, at, Sharer(random, request, text, shared));
      if (!random.OneIn(3)) {
        scenario.script.push_back({at + whole * random.Below(96) / 64, ClientCancels{request}});
      }
      at += whole * random.Below(16) / 64;
    }
  }
}

void DrawExpectedLengths(Scenario& scenario) {
  Random random(Mix(scenario.seed, 91));
  if (!random.OneIn(20)) return;
  Config config = scenario.config;
  config.admission = AdmissionMode::kOptimistic;
  config.batching = Batching::kContinuous;
  config.prefill = Prefill::kChunked;
  config.max_batch_total_tokens = config.max_batch_size = 0;
  config.max_waiting_requests = 100;
  if (WhyInvalid(config)) return;
  scenario.config = config;
  const bool given = random.OneIn(2);
  scenario.eos_one_in = random.OneIn(3) ? random.Between(40, 100) : random.Between(5, 20);
  for (GroupCapacity& group : scenario.groups) {
    group.slots = random.Between(8, 20);
    group.cells = 0;
  }
  if (given) {
    AllowGivenLengths(random, scenario);
  } else {
    AllowLongTexts(random, scenario);
  }
  const std::uint32_t limit = ShortestLimit(scenario);
  for (std::uint32_t i = random.Between(40, 60); i > 0; --i) {
    ClientArrives client;
    client.arrival.request = RequestId(13000 + i);
    // Apart, since compilers differ in the order in which they evaluate arguments.
    const std::uint32_t length = random.Between(1, 12);
    client.arrival.prompt = Words(random.Next(), length);
    client.arrival.max_new_tokens = random.Between(1, 12);
    client.arrival.sampling.seed = random.Next();
    Arrive(scenario, Time(kMoment * random.Below(600)), std::move(client));
  }
  const auto each_class = static_cast<RequestClass>(random.Below(5));
  for (TimedEvent& event : scenario.script) {
    auto* client = std::get_if<ClientArrives>(&event.what);
    if (client == nullptr || client->arrival.prompt.size() > 40 || random.OneIn(8)) continue;
    scheduler::Arrival& arrival = client->arrival;
    const auto prompt = static_cast<std::uint32_t>(arrival.prompt.size());
    arrival.max_new_tokens = given ? random.Between(20, 60) : limit - prompt;
    arrival.length_given = given;
    arrival.request_class = each_class;
    arrival.predicted_tokens = arrival.min_new_tokens = 0;
    arrival.ignore_eos = false;
  }
}

}  // namespace penstock::sim
