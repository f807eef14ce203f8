#include "sim/fleet/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace penstock::sim {
namespace {

// End to end per output token.
Duration Normalised(const RequestRecord& record) {
  return (*record.end - record.arrival) / std::max(1U, record.output_tokens);
}

// 0 for an answer of one token.
Duration InterToken(const RequestRecord& record) {
  return (*record.end - *record.first_token) / std::max(1U, std::max(1U, record.output_tokens) - 1);
}

bool Within(Duration value, const std::optional<Duration>& bound) {
  return !bound || value <= *bound;
}

double Imbalance(const std::vector<std::uint64_t>& computed) {
  const std::uint64_t sum = std::accumulate(computed.begin(), computed.end(), std::uint64_t{0});
  if (sum == 0) return 0;
  const auto most = static_cast<double>(*std::max_element(computed.begin(), computed.end()));
  return most * static_cast<double>(computed.size()) / static_cast<double>(sum);
}

}  // namespace

bool Objective::Met(const RequestRecord& record) const {
  if (!record.ok() || !record.first_token) return false;
  return Within(*record.first_token - record.arrival, ttft) &&
         Within(record.worst_gap, worst_gap) && Within(Normalised(record), normalised) &&
         Within(InterToken(record), inter_token);
}

Summary Summarise(const FleetResult& result, const Objective& objective) {
  Summary summary;
  summary.requests = result.requests.size();
  summary.steps = result.step_count;
  summary.most_decode_rows = result.most_decode_rows;
  summary.seconds = std::chrono::duration<double>(result.end).count();
  std::vector<double> ttft;
  std::vector<double> normalised;
  std::vector<double> end_to_end;
  std::vector<double> waits;
  std::uint64_t met = 0;
  std::uint64_t prompt = 0;
  std::uint64_t output = 0;
  for (const RequestRecord& record : result.requests) {
    if (!record.ok() || !record.first_token) {
      ++summary.failed;
      continue;
    }
    ttft.push_back(Milliseconds(*record.first_token - record.arrival));
    normalised.push_back(Milliseconds(Normalised(record)));
    end_to_end.push_back(Milliseconds(*record.end - record.arrival));
    waits.push_back(std::max(ttft.back(), Milliseconds(record.worst_gap)));
    met += objective.Met(record) ? 1 : 0;
    prompt += record.prompt_tokens;
    output += record.output_tokens;
    summary.cached_tokens += record.cached_tokens;
    summary.preemptions += record.preemptions;
    summary.most_preemptions = std::max(summary.most_preemptions, record.preemptions);
  }
  const double seconds = std::max(summary.seconds, 1e-9);
  summary.requests_per_second = static_cast<double>(ttft.size()) / seconds;
  summary.tokens_per_second = static_cast<double>(output) / seconds;
  summary.attainment =
      static_cast<double>(met) / static_cast<double>(std::max<std::uint64_t>(summary.requests, 1));
  summary.goodput = static_cast<double>(met) / seconds;
  summary.hit_rate = static_cast<double>(summary.cached_tokens) /
                     static_cast<double>(std::max<std::uint64_t>(prompt, 1));
  summary.imbalance = Imbalance(result.computed_tokens);
  summary.ttft_ms = penstock::Summarise(std::move(ttft));
  summary.inter_token_ms = penstock::Summarise(result.gaps_ms);
  summary.normalised_ms = penstock::Summarise(std::move(normalised));
  summary.longest_wait_ms = penstock::Summarise(std::move(waits));
  summary.end_to_end_ms = penstock::Summarise(std::move(end_to_end));
  return summary;
}

std::optional<double> HighestGood(double low, double high, double precision,
                                  const std::function<bool(double)>& good) {
  if (!good(low)) return std::nullopt;
  if (good(high)) return high;
  while (high - low > precision * low) {
    const double middle = std::sqrt(low * high);  // rates may differ by orders of magnitude
    (good(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace penstock::sim
