#include "tools/plan/plan_report.h"

#include <absl/strings/str_format.h>

#include <boost/json.hpp>
#include <chrono>

#include "common/json_text.h"
#include "scheduler/order/order_policy.h"

namespace penstock::plan {
namespace {

namespace json = boost::json;

std::string Bound(const char* name, const std::optional<Duration>& bound) {
  if (!bound) return "";
  return absl::StrFormat(", %s <= %g ms", name, Milliseconds(*bound));
}

std::string Lengths(const Load& load) {
  double prompt = 0;
  double output = 0;
  for (const sim::TraceRequest& request : load.trace.requests) {
    prompt += request.prompt_tokens;
    output += request.output_tokens;
  }
  const auto count = static_cast<double>(load.trace.requests.size());
  return absl::StrFormat("%u requests of %.0f prompt and %.0f output tokens, %s, seed %u",
                         load.trace.requests.size(), prompt / count, output / count,
                         load.own_times ? "times of the trace" : "Poisson arrivals", load.seed);
}

std::string Row(const char* name, const Percentiles& p) {
  return absl::StrFormat("  %-22s p50 %8.1f   p90 %8.1f   p99 %8.1f   ms\n", name, p.p50, p.p90,
                         p.p99);
}

std::string PlanText(const char* title, const Plan& plan) {
  const sim::Summary& s = plan.summary;
  std::string text = absl::StrFormat("%s: %s\n", title, plan.setting.Text());
  text +=
      absl::StrFormat("  goodput %.2f requests/s; at %.2f requests/s:\n", plan.goodput, plan.rate);
  text += Row("time to first token", s.ttft_ms);
  text += Row("inter-token latency", s.inter_token_ms);
  text += absl::StrFormat("  objective met by %.1f %%, %u failed, %u preemptions\n",
                          100 * s.attainment, s.failed, s.preemptions);
  text += absl::StrFormat("  per 1,000 requests: price %.4f, energy %.1f Wh", plan.CostPer1000(),
                          plan.WattHoursPer1000());
  text += absl::StrFormat(" (%.2f an hour, %.0f W)\n", plan.setting.Price(), plan.setting.Watts());
  text += "  step times: " + plan.setting.type->source + "\n";
  return text;
}

json::object ToObject(const Percentiles& p) {
  return {{"mean", p.mean}, {"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"max", p.max}};
}

json::object ToObject(const Plan& plan) {
  const Setting& setting = plan.setting;
  return {{"machine", setting.type->machine->name},
          {"groups", setting.groups},
          {"tensor_parallel", setting.type->ranks},
          {"max_step_tokens", setting.step_tokens},
          {"order", std::string(OrderName(setting.order))},
          {"admission", std::string(AdmissionName(setting.admission))},
          {"step_times", setting.type->source},
          {"goodput", plan.goodput},
          {"rate", plan.rate},
          {"attainment", plan.summary.attainment},
          {"failed", plan.summary.failed},
          {"preemptions", plan.summary.preemptions},
          {"ttft_ms", ToObject(plan.summary.ttft_ms)},
          {"inter_token_ms", ToObject(plan.summary.inter_token_ms)},
          {"price_per_hour", setting.Price()},
          {"watts", setting.Watts()},
          {"price_per_1000", plan.CostPer1000()},
          {"watt_hours_per_1000", plan.WattHoursPer1000()}};
}

json::array Texts(const std::vector<std::string>& lines) {
  json::array texts;
  for (const std::string& line : lines) texts.emplace_back(line);
  return texts;
}

}  // namespace

std::string Describe(const Goal& goal) {
  std::string text = absl::StrFormat("%g %% of requests", 100 * goal.share);
  text += Bound("time to first token", goal.slo.ttft);
  text += Bound("mean time between tokens", goal.slo.inter_token);
  text += Bound("longest time between tokens", goal.slo.worst_gap);
  if (goal.demand) text += absl::StrFormat(", at %.3g requests/s", *goal.demand);
  return text;
}

std::string ToText(const Report& report) {
  const PlanOptions& options = *report.options;
  const std::vector<Plan>& plans = report.found.plans;
  std::string text = "load: " + Lengths(options.load) + "\n";
  text += "objective: " + Describe(options.goal) + "\n";
  text += absl::StrFormat("searched: %u settings in %u runs\n\n", report.found.settings,
                          report.found.runs);
  text += PlanText("choice", plans.front());
  if (plans.size() > 1) text += "\n" + PlanText("runner-up", plans[1]);
  if (!report.changes.empty()) text += "\nwhat would change the choice:\n";
  for (const std::string& line : report.changes) text += "  " + line + "\n";
  if (!report.left_out.empty()) text += "\nnot possible:\n";
  for (const std::string& line : report.left_out) text += "  " + line + "\n";
  return text;
}

std::string ToJson(const Report& report) {
  const PlanOptions& options = *report.options;
  json::array plans;
  for (const Plan& plan : report.found.plans) plans.push_back(ToObject(plan));
  const json::object object{
      {"load", Lengths(options.load)},    {"objective", Describe(options.goal)},
      {"seed", options.load.seed},        {"settings", report.found.settings},
      {"runs", report.found.runs},        {"plans", std::move(plans)},
      {"changes", Texts(report.changes)}, {"not_possible", Texts(report.left_out)}};
  return JsonText(object) + "\n";
}

}  // namespace penstock::plan
