#include "sim/scenario.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/random.h"
#include "sim/rare_cases.h"
#include "sim/scenario_features.h"
#include "sim/special_loads.h"
#include "sim/token_source.h"

namespace penstock::sim {
namespace {

using scheduler::AdmissionMode;
using scheduler::Arrival;
using scheduler::Batching;
using scheduler::Config;
using scheduler::Order;
using scheduler::PlacementPolicy;
using scheduler::Prefill;

constexpr Duration kUnit{1000};  // most times are small multiples of this unit

class Draw {
 public:
  explicit Draw(std::uint64_t seed)
      : random_(seed), crowded_(random_.OneIn(3)), with_adapters_(Mix(seed, 5) % 3 == 0) {
    scenario_.seed = seed;
  }

  Scenario All() {
    Groups();
    Settings();
    Times();
    Load();
    ManyAlike();
    Faults();
    SmallerGroups();
    FollowUps();
    EarlyCancels();
    MeetingEnds();
    Timing();
    EqualLengths();
    Placing();
    Pinning();
    DrawRareCases(random_, scenario_);
    DrawContrastive(random_, scenario_);
    DrawForced(scenario_);
    DrawWindows(random_, scenario_);
    DrawLengthRule(random_, scenario_);
    DrawSnapshots(random_, scenario_);
    DrawSharedStarts(scenario_);
    DrawExpectedLengths(scenario_);
    DrawRecovery(scenario_);
    DrawAccounts(scenario_);
    DrawLearned(scenario_);
    return std::move(scenario_);
  }

 private:
  // emplace_back, since GCC 12 warns of unread values of a variant in push_back of an event.
  void Append(Time at, ScriptEvent what) {
    TimedEvent& event = scenario_.script.emplace_back();
    event.at = at;
    event.what = std::move(what);
  }

  void Groups() {
    const std::uint32_t count = random_.OneIn(4) ? 1 : random_.Between(2, 3);
    GroupCapacity capacity;
    capacity.block_size = random_.OneIn(4) ? random_.Between(1, 8) : 4;
    capacity.slots = crowded_ ? random_.Between(6, 12) : random_.Between(1, 10);
    capacity.max_sequence_length = random_.Between(24, 160);
    if (crowded_) capacity.max_sequence_length = random_.Between(40, 90);
    capacity.padded_attention = random_.OneIn(4);
    capacity.shares_blocks = !random_.OneIn(6);
    const bool in_cells = random_.OneIn(4);
    const bool alike = random_.OneIn(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i > 0 && !alike) {
        capacity.slots = random_.Between(1, 10);
        capacity.max_sequence_length = random_.Between(16, 120);
        capacity.shares_blocks = !random_.OneIn(6);
      }
      // Tiny pools find most bugs. Some pools hold just the longest sequence.
      const std::uint32_t longest = capacity.max_sequence_length / capacity.block_size + 1;
      capacity.blocks = random_.OneIn(4) ? longest : random_.Between(4, 64);
      if (crowded_) capacity.blocks = random_.Between(longest, longest + longest / 4);
      if (in_cells) {
        capacity.padded_attention = true;
        capacity.cells = capacity.max_sequence_length * random_.Between(1, 5);
      }
      scenario_.groups.push_back(capacity);
      scenario_.up_at.push_back(random_.OneIn(3) ? kUnit * random_.Below(200) : Duration(0));
    }
  }

  void Settings() {
    Config& config = scenario_.config;
    config.max_decode_rows = random_.OneIn(3) ? random_.Between(2, 4) : 1;
    config.max_step_tokens = config.max_decode_rows + random_.Between(0, 40);
    for (GroupCapacity& group : scenario_.groups) {
      group.max_step_tokens = config.max_step_tokens + random_.Below(4);
    }
    if (random_.OneIn(2)) config.max_batch_prefill_tokens = random_.Between(1, 20);
    if (random_.OneIn(4)) config.max_batch_total_tokens = random_.Between(30, 250);
    if (random_.OneIn(4)) config.max_batch_size = random_.Between(1, 8);
    config.max_waiting_requests = random_.Between(1, 20);
    config.pipeline_depth = random_.OneIn(3) ? random_.Between(1, 4) : 2;
    if (random_.OneIn(4)) config.batching = static_cast<Batching>(random_.Below(3));
    if (random_.OneIn(4)) config.prefill = Prefill::kWhole;
    Policies(config);
  }

  void Policies(Config& config) {
    config.order = static_cast<Order>(random_.Below(4));
    config.prefix_caching = !random_.OneIn(4);
    if (random_.OneIn(2)) config.max_overtakes = random_.Between(1, 6);
    if (crowded_ || random_.OneIn(2)) {
      config.admission =
          config.max_overtakes % 2 == 0 ? AdmissionMode::kOptimistic : AdmissionMode::kMixed;
    }
    if (WhyInvalid(config)) config.admission = AdmissionMode::kGuaranteed;
    if (WhyInvalid(config)) config.order = Order::kFcfs;
  }

  // Rare settings: a time budget (whose warm-up table may be short or wrong), batches of equal
  // lengths, TGI's admission rule, and every way to split.
  void Timing() {
    Config& config = scenario_.config;
    if (random_.OneIn(2)) {
      const std::uint32_t points = random_.Below(9);
      for (std::uint32_t i = 0; i < points; ++i) {
        StepTimeSample sample;
        sample.decode_rows = random_.Below(6);
        sample.prefill_tokens = random_.Below(30);
        sample.context_tokens = random_.Below(100);
        sample.time = scenario_.step_base + kUnit * random_.Below(40);
        scenario_.calibration.samples.push_back(sample);
      }
    }
    if (random_.OneIn(2)) config.target_inter_token = kUnit * random_.Between(1, 60);
    if (random_.OneIn(2)) config.static_grouping = scheduler::StaticGrouping::kEqual;
    if (random_.OneIn(2)) config.waiting_served_permille = random_.Below(1500);
    if (random_.OneIn(2)) config.max_waiting_tokens = random_.Below(30);
    if (random_.OneIn(2)) config.split = scheduler::SplitObjective::kSparsity;
    config.max_splits = random_.Between(1, 4);
    config.max_sparsity_ppm = random_.Below(1'000'000);
  }

  void Placing() {
    Config& config = scenario_.config;
    config.placement = static_cast<PlacementPolicy>(random_.Below(3));
    if (random_.OneIn(3)) config.placement_load_permille = random_.Below(3000);
  }

  // Prefixes to pin, of any length, and later requests that begin with them.
  void Pinning() {
    Config& config = scenario_.config;
    config.pinned_prefixes = random_.Below(4);
    if (random_.OneIn(3)) config.pinned_blocks = random_.Between(1, 12);
    if (!random_.OneIn(2)) return;
    const std::size_t events = scenario_.script.size();
    for (std::size_t i = 0; i < events; ++i) {
      auto* client = std::get_if<ClientArrives>(&scenario_.script[i].what);
      if (client == nullptr || !random_.OneIn(2)) continue;
      auto& prompt = client->arrival.prompt;
      const auto pinned = 1 + random_.Below(static_cast<std::uint32_t>(prompt.size()));
      client->arrival.pinned_tokens = pinned;
      ClientArrives next = *client;
      next.arrival.request = RequestId(3000 + next.arrival.request.value());
      next.arrival.prompt.resize(pinned);
      for (std::uint32_t own = random_.Between(1, 9); own > 0; --own) {
        next.arrival.prompt.push_back(static_cast<TokenId>(10 + random_.Below(1000)));
      }
      next.arrival.tenant = random_.OneIn(6) ? "third" : next.arrival.tenant;
      next.arrival.max_new_tokens = random_.Between(1, 12);
      next.stop_string_at = next.gives_up_at = 0;
      const Time at = scenario_.script[i].at + kUnit * random_.Between(0, 300);
      scenario_.script.push_back({at, std::move(next)});
    }
    for (std::uint32_t forgets = random_.Below(3); forgets > 0; --forgets) {
      OperatorForgets what{random_.OneIn(3) ? "other" : "", std::nullopt};
      if (random_.OneIn(2)) what.made_by = SomeRequest();
      scenario_.script.push_back({Sometime(), what});
    }
  }

  void Times() {
    scenario_.step_base = kUnit * random_.Between(0, 20);
    scenario_.step_per_row = kUnit * random_.Below(2);
    scenario_.network = kUnit * random_.Below(10);
    scenario_.late_results = random_.OneIn(2);
    if (!crowded_ && random_.OneIn(2)) scenario_.eos_one_in = random_.Between(3, 30);
    if (random_.OneIn(5)) scenario_.error_one_in = 8;
  }

  void Load() {
    const std::uint32_t requests = random_.Between(crowded_ ? 10 : 4, 30);
    // Some requests arrive in bursts, others apart.
    const std::uint32_t pace = random_.Between(1, crowded_ ? 10 : 40);
    const std::uint32_t families = random_.Between(1, 4);
    Time now{};
    for (std::uint32_t i = 1; i <= requests; ++i) {
      if (!random_.OneIn(3)) now += kUnit * random_.Below(pace);
      Append(now, Arrives(RequestId(i), families));
    }
    end_ = now + kUnit * 200;
  }

  // Many short outputs of one class. Later ones are expected to be as long as these were.
  void ManyAlike() {
    Config& config = scenario_.config;
    const bool optimistic = config.admission != AdmissionMode::kGuaranteed;
    if (!optimistic || !random_.OneIn(4)) return;
    const bool given = config.admission == AdmissionMode::kOptimistic && random_.OneIn(2);
    const auto each_class = static_cast<RequestClass>(random_.Below(5));
    config.max_waiting_requests += 20;
    scenario_.eos_one_in = random_.Between(3, 12);
    Time now{};
    for (std::uint32_t i = random_.Between(36, 60); i > 0; --i) {
      ClientArrives client = Arrives(RequestId(5000 + i), 1);
      client.arrival.prompt.resize(std::min<std::size_t>(client.arrival.prompt.size(), 6));
      client.arrival.max_new_tokens = random_.Between(2, 12);
      now += kUnit * random_.Below(12);
      Append(now, std::move(client));
    }
    for (TimedEvent& event : scenario_.script) {
      auto* client = std::get_if<ClientArrives>(&event.what);
      if (client == nullptr || random_.OneIn(8)) continue;
      client->arrival.request_class = each_class;
      client->arrival.length_given = given;
      client->arrival.predicted_tokens = 0;
    }
  }

  // Few different lengths, so that static batches of equal lengths have several members.
  void EqualLengths() {
    const Config& config = scenario_.config;
    const bool equal = config.batching == Batching::kStatic &&
                       config.static_grouping == scheduler::StaticGrouping::kEqual;
    for (TimedEvent& event : scenario_.script) {
      auto* client = std::get_if<ClientArrives>(&event.what);
      if (!equal || client == nullptr || random_.OneIn(4)) continue;
      client->arrival.prompt.resize(random_.Between(3, 4), TokenId{77});
      client->arrival.max_new_tokens = random_.OneIn(3) ? 6 : 5;
    }
  }

  // Prompts of one family begin with the same tokens, so they share prefixes of every length.
  std::vector<TokenId> Prompt(std::uint32_t families) {
    const std::uint32_t length = 1 + random_.Below(random_.OneIn(5) ? 100 : 24);
    const bool loner = random_.OneIn(3);
    const std::uint32_t family = random_.Below(families);
    const std::uint32_t common = loner ? 0 : random_.Below(2 * length);
    const std::uint32_t own = random_.Below(1u << 20);
    std::vector<TokenId> prompt(length);
    for (std::uint32_t p = 0; p < length; ++p) {
      const std::uint64_t source = p < common ? family : 1000 + own;
      prompt[p] = static_cast<TokenId>(10 + Mix(source, p) % 1000);
    }
    return prompt;
  }

  ClientArrives Arrives(RequestId id, std::uint32_t families) {
    ClientArrives client;
    Arrival& arrival = client.arrival;
    arrival.request = id;
    arrival.prompt = Prompt(families);
    arrival.max_new_tokens = 1 + random_.Below(random_.OneIn(5) ? 80 : 12);
    arrival.min_new_tokens = random_.OneIn(6) ? random_.Below(6) : 0;
    arrival.logprobs.prompt_logprobs = random_.OneIn(8);
    if (random_.OneIn(6)) arrival.logprobs.kind = LogprobRequest::Kind::kRaw;
    arrival.trace_id = random_.OneIn(6) ? "trace" : "";
    arrival.ignore_eos = random_.OneIn(8);
    arrival.priority = static_cast<std::int32_t>(random_.Below(4)) - 1;
    arrival.tenant = random_.OneIn(4) ? "other" : "";
    arrival.adapter_id = with_adapters_ && Mix(id.value(), 5) % 3 == 0 ? "style" : "";
    arrival.length_given = !random_.OneIn(4);
    arrival.predicted_tokens = random_.OneIn(3) ? random_.Below(40) : 0;
    if (crowded_) {
      arrival.max_new_tokens = random_.Between(20, 70);
      arrival.predicted_tokens = random_.Between(1, 3);
      arrival.prompt.resize(std::min<std::size_t>(arrival.prompt.size(), 12));
    }
    arrival.request_class = static_cast<RequestClass>(random_.Below(5));
    arrival.sampling.seed = random_.Next();
    if (Mix(arrival.sampling.seed) % 4 == 0) arrival.grammar = {GrammarSpec::Kind::kRegex, ".*"};
    if (random_.OneIn(6)) arrival.stop_token_ids = {static_cast<TokenId>(10 + random_.Below(20))};
    if (random_.OneIn(5)) client.stop_string_at = random_.Between(1, arrival.max_new_tokens);
    if (random_.OneIn(8)) client.gives_up_at = random_.Between(1, arrival.max_new_tokens);
    client.reaction = kUnit * random_.Below(6);
    return client;
  }

  Time Sometime() {
    return Time(
        Duration(random_.Below(static_cast<std::uint32_t>(end_.time_since_epoch().count() + 1))));
  }
  GroupId SomeGroup() {
    return GroupId(random_.Below(static_cast<std::uint32_t>(scenario_.groups.size())));
  }
  RequestId SomeRequest() {
    return RequestId(1 + random_.Below(static_cast<std::uint32_t>(scenario_.script.size() + 2)));
  }

  void Faults() {
    const std::uint32_t count = random_.OneIn(4) ? 0 : random_.Below(10);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Time at = Sometime();  // drawn before the fault
      Append(at, Fault());
    }
    if (random_.OneIn(6)) Append(Sometime(), OperatorDrains{});
  }

  // Some groups were warmed up for smaller steps than the settings allow.
  void SmallerGroups() {
    const Config& config = scenario_.config;
    for (GroupCapacity& group : scenario_.groups) {
      if (!random_.OneIn(4)) continue;
      group.max_step_tokens = random_.Between(config.max_decode_rows, config.max_step_tokens);
    }
  }

  // The next turn of a conversation: an earlier prompt, its output and new tokens.
  void FollowUps() {
    if (!random_.OneIn(2)) return;
    const TokenSource says{scenario_.eos_one_in};
    const std::size_t events = scenario_.script.size();
    for (std::size_t i = 0; i < events; ++i) {
      const TimedEvent event = scenario_.script[i];
      const auto* client = std::get_if<ClientArrives>(&event.what);
      if (client == nullptr || !random_.OneIn(3)) continue;
      ClientArrives next = *client;
      Arrival& arrival = next.arrival;
      arrival.request = RequestId(1000 + arrival.request.value());
      const std::uint32_t masked = arrival.ignore_eos ? UINT32_MAX : arrival.min_new_tokens;
      const auto answer = says.Output(arrival.prompt, arrival.max_new_tokens, masked);
      arrival.prompt.insert(arrival.prompt.end(), answer.begin(), answer.end());
      for (std::uint32_t own = random_.Between(1, 6); own > 0; --own) {
        arrival.prompt.push_back(static_cast<TokenId>(10 + random_.Below(1000)));
      }
      arrival.max_new_tokens = random_.Between(1, 12);
      next.stop_string_at = next.gives_up_at = 0;
      Append(event.at + kUnit * random_.Between(20, 500), std::move(next));
    }
  }

  // Outputs for which two or three finish reasons apply, at the same token or at neighbouring ones.
  void MeetingEnds() {
    const TokenSource says{scenario_.eos_one_in};
    for (TimedEvent& event : scenario_.script) {
      auto* client = std::get_if<ClientArrives>(&event.what);
      if (client == nullptr || !random_.OneIn(4)) continue;
      Arrival& arrival = client->arrival;
      const std::uint32_t masked = arrival.ignore_eos ? UINT32_MAX : arrival.min_new_tokens;
      const auto answer = says.Output(arrival.prompt, arrival.max_new_tokens, masked);
      const auto length = static_cast<std::uint32_t>(answer.size());
      std::uint32_t end = random_.Between(1, length);
      if (random_.OneIn(2)) end = length;
      if (random_.OneIn(3)) arrival.stop_token_ids = {answer[end - 1]};
      client->stop_string_at = end + (random_.OneIn(4) ? 1 : 0);
      client->stop_known_at = random_.Between(1, end);
      if (random_.OneIn(4)) client->gives_up_at = end;
    }
  }

  // Some clients disconnect before their first token, while they wait or during prefill.
  void EarlyCancels() {
    const std::size_t events = scenario_.script.size();
    for (std::size_t i = 0; i < events; ++i) {
      const TimedEvent event = scenario_.script[i];
      const auto* client = std::get_if<ClientArrives>(&event.what);
      if (client == nullptr || !random_.OneIn(8)) continue;
      const Time soon = event.at + kUnit * random_.Below(60);
      Append(soon, ClientCancels{client->arrival.request});
    }
  }

  ScriptEvent Fault() {
    switch (random_.Below(14)) {
      case 0:
        return RankIsLost{SomeGroup(), kUnit * random_.Below(100)};
      case 1:
        return ResultIsLost{SomeGroup(), kUnit * random_.Below(100)};
      case 2:
        return ResultIsRepeated{SomeGroup()};
      case 3:
        return GroupStalls{SomeGroup(), kUnit * random_.Below(100)};
      case 4:
        if (random_.OneIn(3)) return GroupFormsAgain{SomeGroup()};
        return ClientCancels{SomeRequest()};
      case 5:
      case 6:
      case 7:
        return StopStringFound{SomeRequest(), random_.Below(10)};
      case 8:
      case 9:
        return ResultIsEarly{SomeGroup()};
      default:
        return ClientCancels{SomeRequest()};
    }
  }

  Random random_;
  const bool crowded_;  // outputs exceed their forecasts in a small pool, which causes preemptions
  const bool with_adapters_;
  Scenario scenario_;
  Time end_{};
};

}  // namespace

Scenario DrawScenario(std::uint64_t seed) { return Draw(seed).All(); }

}  // namespace penstock::sim
