// docs/api/metrics.md has every metric with its unit and labels, and every label with its values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "router/metrics/metrics.h"
#include "router/metrics/vllm_names.h"
#include "tests/unit/support/paths.h"

namespace penstock::router {
namespace {

constexpr std::string_view kHead =
    R"(# Metrics

<!-- Generated from router/metrics.
     After a change: PENSTOCK_UPDATE_DOCS=1 build/tests/router_metrics_test -->

`GET /metrics` shows these in the text format of Prometheus. A metric with labels appears with its
first value. The names that begin with `tgi_` are those of text-generation-inference, for its
dashboards and alerts; `--api-profile tgi` gives `tgi_batch_next_size` TGI's 1,024 buckets, and 11
otherwise.

| Metric | Type | Unit | Labels | Meaning |
|---|---|---|---|---|
)";

constexpr std::string_view kVllmHead = R"(
## vLLM's names

`--vllm-metrics` adds these, for vLLM's dashboards and for the endpoint picker of the Gateway API
inference extension. The values are those of Penstock's metrics, with Penstock's buckets. Each has
the labels `model_name` and `engine` (always `0`: a router has one queue). There is no
`vllm:lora_requests_info`.

| Metric | From | Labels | Meaning |
|---|---|---|---|
)";

// Values of the labels, in the order of their names.
constexpr std::pair<std::string_view, std::string_view> kLabels[] = {
    {"admission", "`guaranteed`, `optimistic`, `mixed` (`--admission`)"},
    {"code", "status of HTTP; 499: the client did not take the answer"},
    {"decision",
     "`queued`, `admitted`, `deferred`, `chunked`, `split`, `preempted`, `lost`, `refused`, "
     "`retired`, `finished`"},
    {"dialect", "`tgi`, `openai`, `djl`, `effective`"},
    {"direction", "`plan`, `result`"},
    {"err", "as `kind` of errors; `dropped`: the client left"},
    {"error",
     "as `kind` of errors, also where the error came after a status of 200; `cancelled`: the "
     "client left; absent: there was none"},
    {"file", "`api_keys`, `certificate`"},
    {"finish_reason", "`eos`, `length`, `stop_token`, `stop_string`, `cancelled`"},
    {"group", "number of the replica group, from 0"},
    {"kind",
     "of errors: `validation`, `json`, `type`, `unknown_key`, `content_type`, `template`, `tool`, "
     "`unsupported`, `unauthorized`, `not_found`, `model_not_found`, `method`, `too_large`, "
     "`http`, `timeout`, `overloaded`, `unavailable`, `deadline`, `generation`, `internal`; of "
     "tokens: `prompt`, `generated`"},
    {"kv_group", "0: layers that keep every position; 1: layers with a window"},
    {"method", "`prefill`, `decode`"},
    {"order", "`fcfs`, `longest-prefix`, `priority`, `shortest-predicted`, `learned` (`--order`)"},
    {"outcome", "of spans: `sent`, `dropped`, `failed`; of reloads: `done`, `failed`"},
    {"rank", "number of the shard in its group, from 0"},
    {"reason", "`chunking`"},
    {"route", "pattern of the route; `unmatched`: no route"},
    {"short_of", "a budget, as in `GET /requests/{id}`"},
    {"state", "`used`, `cached`, `retiring`, `free`"},
    {"tenant", "name of the API key; `other` beyond 100 names"},
    {"version", "of the router"},
};

// A name says its unit, as Prometheus advises. The first row that fits counts.
std::string_view UnitOf(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"_ratio", "ratio"},
      {"sparsity", "ratio"},
      {"padding_per_token", "ratio"},
      {"bytes", "bytes"},
      {"seconds", "seconds"},
      {"duration", "seconds"},
      {"tokens", "tokens"},
      {"input_length", "tokens"},
      {"blocks", "blocks"},
      {"cells", "cells"},
      {"rows", "rows"},
      {"next_size", "rows"},
      {"connections", "connections"},
      {"requests", "requests"},
      {"tgi_request_", "requests"},
      {"queue", "requests"},
      {"current_size", "requests"}};
  for (const auto& [part, unit] : kUnits) {
    if (name.find(part) != name.npos) return unit;
  }
  return "count";
}

std::string Quoted(const std::string& labels) {
  std::istringstream names(labels);
  std::string quoted;
  for (std::string name; names >> name;) quoted += (quoted.empty() ? "`" : ", `") + name + "`";
  return quoted;
}

void UseTgiNames(Metrics& metrics) { metrics.AddTgiNames(100, 200, 16, false); }

std::string Page() {
  std::string page(kHead);
  Metrics metrics;
  UseTgiNames(metrics);
  for (const FamilyText& family : metrics.families()) {
    page += "| `" + family.name + "` | " + family.type + " | ";
    page.append(UnitOf(family.name)).append(" | ");
    page += Quoted(family.labels) + " | " + family.help + " |\n";
  }
  page += "\n## Labels\n\n| Label | Values |\n|---|---|\n";
  for (const auto& [label, values] : kLabels) {
    page.append("| `").append(label).append("` | ").append(values).append(" |\n");
  }
  page.append(kVllmHead);
  for (const VllmName& name : VllmNames()) {
    page.append("| `").append(name.name).append("` | `").append(name.source).append("` | ");
    page.append(Quoted(std::string(name.labels))).append(" | ").append(name.help).append(" |\n");
  }
  return page;
}

TEST(MetricsPage, IsUpToDate) {
  const std::string path = testing_support::SourcePath("docs/api/metrics.md");
  if (std::getenv("PENSTOCK_UPDATE_DOCS") != nullptr) std::ofstream(path) << Page();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == Page())
      << path << " is stale. Run: PENSTOCK_UPDATE_DOCS=1 build/tests/router_metrics_test";
}

TEST(MetricsPage, EveryMeaningIsASentence) {
  Metrics metrics;
  UseTgiNames(metrics);
  for (const FamilyText& family : metrics.families()) {
    EXPECT_THAT(family.help, testing::EndsWith(".")) << family.name;
  }
}

// Gives every metric with labels a value.
void UseEveryLabel(Metrics& metrics) {
  metrics.http().Response("/generate", 422, "validation");
  metrics.requests().Arrived("/generate");
  metrics.requests().Succeeded("eos");
  metrics.requests().Failed("validation");
  metrics.requests().UnknownKeys("tgi", 1);
  metrics.tenants().Request("alice");
  metrics.tenants().Refused("alice");
  metrics.tenants().Tokens("alice", 1, 1);
  metrics.scheduler().SetWaitingFor("blocks", 1);
  metrics.scheduler().Decisions("queued", 1);
  metrics.scheduler().Admitted("mixed", "fcfs", 1);
  metrics.groups().ExecuteMessage(GroupMetrics::Direction::kPlan, GroupId(0), 0);
  metrics.groups().SetUp(GroupId(0), true);
  metrics.groups().SetCacheSizes(GroupId(0), {.kv_groups = {{}}});
  metrics.spans().Count("sent", 1);
}

// The labels of each metric in a page of /metrics; `le` and `quantile` are Prometheus's.
std::map<std::string, std::set<std::string>> LabelsIn(const std::string& text) {
  std::map<std::string, std::set<std::string>> labels;
  const std::regex sample("(\\w+)\\{(.*)\\} .*");
  const std::regex label("(\\w+)=\"");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (line.starts_with('#') || !std::regex_match(line, found, sample)) continue;
    const std::string name = std::regex_replace(found[1].str(), std::regex("_bucket$"), "");
    const std::string all = found[2];
    for (std::sregex_iterator at(all.begin(), all.end(), label), end; at != end; ++at) {
      if ((*at)[1] != "le" && (*at)[1] != "quantile") labels[name].insert((*at)[1]);
    }
  }
  return labels;
}

TEST(MetricsPage, NamesTheLabelsThatMetricsShow) {
  Metrics metrics("1.2.3");
  UseTgiNames(metrics);
  UseEveryLabel(metrics);
  const auto shown = LabelsIn(metrics.Render());
  for (const FamilyText& family : metrics.families()) {
    std::istringstream names(family.labels);
    const std::set<std::string> declared{std::istream_iterator<std::string>(names), {}};
    const auto found = shown.find(family.name);
    EXPECT_EQ(declared, found == shown.end() ? std::set<std::string>() : found->second)
        << family.name;
    for (const std::string& label : declared) {
      EXPECT_TRUE(std::ranges::any_of(kLabels, [&](const auto& row) { return row.first == label; }))
          << label << " has no values";
    }
  }
}

}  // namespace
}  // namespace penstock::router
