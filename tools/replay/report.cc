#include "tools/replay/report.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "common/exit_codes.h"
#include "common/json_text.h"
#include "common/status.h"
#include "tools/chart/line_chart.h"
#include "tools/chart/svg.h"

namespace penstock::replay {
namespace {

namespace json = boost::json;
using chart::Axis;
using chart::Chart;
using chart::Curve;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
json::object ToObject(const Percentiles& p) {
  return {{"mean", p.mean}, {"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"max", p.max}};
}

std::string Row(const char* name, const Percentiles& p) {
  return absl::StrFormat("%-22s %10.2f %10.2f %10.2f %10.2f %10.2f\n", name, p.mean, p.p50, p.p90,
                         p.p99, p.max);
}

// Share of values (0 … 1) by value: at most 200 points of the sorted values.
Curve Shares(std::string name, std::vector<double> values) {
  Curve curve{std::move(name), {}};
  std::sort(values.begin(), values.end());
  const std::size_t points = std::min<std::size_t>(values.size(), 200);
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t at = points == 1 ? 0 : i * (values.size() - 1) / (points - 1);
    curve.points.push_back(
        {values[at], static_cast<double>(at + 1) / static_cast<double>(values.size())});
  }
  return curve;
}

std::vector<double> FirstTokens(const sim::FleetResult& result) {
  std::vector<double> first;
  for (const sim::RequestRecord& record : result.requests) {
    if (record.first_token) first.push_back(Milliseconds(*record.first_token - record.arrival));
  }
  return first;
}

// Mean of `field` over the steps in each of 60 slices of the run. A slice without steps has 0.
template <class Field>
Curve Course(std::string name, const sim::FleetResult& result, Field field) {
  constexpr std::size_t kSlices = 60;
  std::vector<double> sums(kSlices, 0);
  std::vector<double> steps(kSlices, 0);
  const double end = std::max(Seconds(result.end), 1e-9);
  for (const sim::StepRecord& step : result.steps) {
    const auto slice =
        std::min(static_cast<std::size_t>(Seconds(step.at) / end * kSlices), kSlices - 1);
    sums[slice] += static_cast<double>(field(step));
    steps[slice] += 1;
  }
  Curve curve{std::move(name), {}};
  for (std::size_t i = 0; i < kSlices; ++i) {
    curve.points.push_back(
        {end * (static_cast<double>(i) + 0.5) / kSlices, sums[i] / std::max(steps[i], 1.0)});
  }
  return curve;
}

}  // namespace

std::string ToText(const sim::Summary& s) {
  std::string text =
      absl::StrFormat("%-22s %10s %10s %10s %10s %10s\n", "ms", "mean", "p50", "p90", "p99", "max");
  text += Row("time to first token", s.ttft_ms);
  text += Row("inter-token latency", s.inter_token_ms);
  text += Row("latency per token", s.normalised_ms);
  text += Row("end to end", s.end_to_end_ms);
  text += Row("longest wait", s.longest_wait_ms);
  text +=
      absl::StrFormat("requests %u, failed %u, in %.1f s: %.2f requests/s, %.0f tokens/s\n",
                      s.requests, s.failed, s.seconds, s.requests_per_second, s.tokens_per_second);
  text += absl::StrFormat("objective met by %.2f %%: goodput %.2f requests/s\n", 100 * s.attainment,
                          s.goodput);
  text += absl::StrFormat(
      "prompt tokens from the cache %.2f %%, preemptions %u (at most %u a request)\n",
      100 * s.hit_rate, s.preemptions, s.most_preemptions);
  if (s.forecast_tau) {
    text +=
        absl::StrFormat("Kendall's tau of forecasts and output lengths %.3f\n", *s.forecast_tau);
  }
  text += absl::StrFormat("steps %u, largest batch %u, most / mean work of a group %.3f\n", s.steps,
                          s.most_decode_rows, s.imbalance);
  return text;
}

std::string ToJson(const sim::Summary& s, std::optional<double> rate) {
  json::object object = {{"requests", s.requests},
                         {"failed", s.failed},
                         {"seconds", s.seconds},
                         {"requests_per_second", s.requests_per_second},
                         {"tokens_per_second", s.tokens_per_second},
                         {"ttft_ms", ToObject(s.ttft_ms)},
                         {"inter_token_ms", ToObject(s.inter_token_ms)},
                         {"normalised_ms", ToObject(s.normalised_ms)},
                         {"end_to_end_ms", ToObject(s.end_to_end_ms)},
                         {"longest_wait_ms", ToObject(s.longest_wait_ms)},
                         {"attainment", s.attainment},
                         {"goodput", s.goodput},
                         {"hit_rate", s.hit_rate},
                         {"cached_tokens", s.cached_tokens},
                         {"preemptions", s.preemptions},
                         {"most_preemptions", s.most_preemptions},
                         {"imbalance", s.imbalance},
                         {"steps", s.steps},
                         {"most_decode_rows", s.most_decode_rows}};
  if (rate) object["rate"] = *rate;
  if (s.forecast_tau) object["forecast_tau"] = *s.forecast_tau;
  return JsonText(object) + "\n";
}

std::string ToCsv(const sim::FleetResult& result) {
  std::string text =
      "arrival_s,ttft_ms,end_to_end_ms,worst_gap_ms,prompt_tokens,cached_tokens,output_tokens,"
      "preemptions\n";
  for (const sim::RequestRecord& record : result.requests) {
    text += absl::StrFormat("%.6f,", Seconds(record.arrival));
    text += record.first_token
                ? absl::StrFormat("%.3f,", Milliseconds(*record.first_token - record.arrival))
                : ",";
    text += record.end ? absl::StrFormat("%.3f,", Milliseconds(*record.end - record.arrival)) : ",";
    text +=
        absl::StrFormat("%.3f,%u,%u,%u,%u\n", Milliseconds(record.worst_gap), record.prompt_tokens,
                        record.cached_tokens, record.output_tokens, record.preemptions);
  }
  return text;
}

std::string ToSvg(const std::vector<NamedRun>& runs) {
  const Axis share{.label = "share of requests within"};
  const Axis time{.label = "seconds since the start"};
  const Axis requests{.label = "requests", .whole = true};
  Chart first{"Time to first token", {.label = "ms from arrival", .logarithmic = true}, share, {}};
  Chart gaps{"Time between two tokens",
             {.label = "ms between tokens", .logarithmic = true},
             {.label = "share of gaps within"},
             {}};
  Chart running{"Requests in a step, mean", time, requests, {}};
  Chart waiting{"Requests that wait, mean", time, requests, {}};
  for (const NamedRun& run : runs) {
    const auto add = [&](Chart& to, Curve curve) {
      curve.colour = run.colour.empty() ? chart::ModeColour(run.name) : run.colour;
      to.curves.push_back(std::move(curve));
    };
    add(first, Shares(run.name, FirstTokens(*run.result)));
    add(gaps, Shares(run.name, run.result->gaps_ms));
    if (run.result->steps.empty()) continue;
    add(running, Course(run.name, *run.result,
                        [](const sim::StepRecord& step) { return step.decode_rows; }));
    add(waiting,
        Course(run.name, *run.result, [](const sim::StepRecord& step) { return step.waiting; }));
  }
  return chart::ToSvg({first, gaps, running, waiting});
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  const bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return usage ? kExitUsage : kExitFailure;
}

int Complain(std::string_view program, const std::string& what, int code) {
  std::fprintf(stderr, "%s: error: %s\n", std::string(program).c_str(), what.c_str());
  return code;
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return absl::OkStatus();
  }
  std::ofstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("cannot write `" + path + "`: " + std::strerror(errno));
  file << text;
  file.close();
  if (!file) return absl::UnavailableError("cannot write `" + path + "`");
  return absl::OkStatus();
}

}  // namespace penstock::replay
