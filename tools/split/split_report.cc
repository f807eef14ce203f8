#include "tools/split/split_report.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "common/json_text.h"
#include "tools/chart/line_chart.h"

namespace penstock::split {
namespace {

SplitReport Report(const std::vector<std::uint64_t>& lengths, const scheduler::SplitRule& rule) {
  std::vector<scheduler::SplitRow> rows;
  for (const std::uint64_t length : lengths) rows.push_back({length, 1});
  scheduler::BatchSplitter splitter;
  const scheduler::BatchPartition& partition = splitter.Split(rows, rule);
  SplitReport report;
  report.tokens = partition.tokens;
  report.padding = partition.padding;
  for (std::size_t p = 0; p < partition.ends.size(); ++p) {
    report.parts.emplace_back();
    report.lengths.emplace_back();
    for (const std::uint32_t row : partition.Part(p)) {
      report.parts.back().push_back(row + 1);
      report.lengths.back().push_back(lengths[row]);
    }
  }
  return report;
}

template <class T>
std::string ListText(const std::vector<T>& list) {
  std::string text;
  for (const T& item : list) text += (text.empty() ? "" : ", ") + std::to_string(item);
  return "[" + text + "]";
}

template <class T>
std::string ListsText(const std::vector<std::vector<T>>& lists) {
  std::string text;
  for (const auto& list : lists) text += (text.empty() ? "" : ", ") + ListText(list);
  return "[" + text + "]";
}

}  // namespace

double SplitReport::Sparsity() const {
  return static_cast<double>(padding) / static_cast<double>(padding + tokens);
}

double SplitReport::PaddingPerToken() const {
  return static_cast<double>(padding) / static_cast<double>(tokens);
}

SplitReport Split(const SplitOptions& options) { return Report(options.lengths, options.rule); }

std::vector<SplitReport> Sweep(const SplitOptions& options) {
  scheduler::SplitRule rule = options.rule;
  rule.objective = scheduler::SplitObjective::kSparsity;
  rule.max_sparsity_ppm = 0;  // so that max_splits decides
  const auto most = std::min<std::size_t>(rule.max_splits, options.lengths.size());
  std::vector<SplitReport> sweep;
  for (std::size_t parts = 1; parts <= most; ++parts) {
    rule.max_splits = static_cast<std::uint32_t>(parts);
    sweep.push_back(Report(options.lengths, rule));
    if (sweep.back().padding == 0) break;
  }
  return sweep;
}

std::string ToText(const SplitOptions& options, const SplitReport& report) {
  const bool cost = options.rule.objective == scheduler::SplitObjective::kCost;
  return "seq_lengths: " + ListText(options.lengths) +
         (cost ? "\nlaunch_cells: " + std::to_string(options.rule.part_cost)
               : "\nmax_sparsity: " + NumberText(options.max_sparsity)) +
         "\nnum_splits: " + std::to_string(report.parts.size()) +
         "\npartition: " + ListsText(report.parts) +
         "\npadding: " + std::to_string(report.padding) +
         "\nsparsity: " + absl::StrFormat("%.3f", report.Sparsity()) +
         "\npadding_per_token: " + absl::StrFormat("%.3f", report.PaddingPerToken()) + "\n";
}

std::string ToJson(const SplitReport& report) {
  return "{\"parts\":" + ListsText(report.parts) + ",\"lengths\":" + ListsText(report.lengths) +
         ",\"tokens\":" + std::to_string(report.tokens) +
         ",\"padding\":" + std::to_string(report.padding) +
         ",\"sparsity\":" + absl::StrFormat("%.6f", report.Sparsity()) +
         ",\"padding_per_token\":" + absl::StrFormat("%.6f", report.PaddingPerToken()) + "}\n";
}

std::string ToJson(const std::vector<SplitReport>& sweep) {
  std::string text;
  for (const SplitReport& report : sweep) {
    std::string object = ToJson(report);
    object.pop_back();
    text += (text.empty() ? "" : ",\n ") + object;
  }
  return "[" + text + "]\n";
}

std::string ToTable(const std::vector<SplitReport>& sweep) {
  std::string table = "parts    padding      cells  sparsity  padding/token  partition\n";
  for (const SplitReport& report : sweep) {
    absl::StrAppendFormat(&table, "%5u %10u %10u  %8.4f  %13.4f  ", report.parts.size(),
                          report.padding, report.padding + report.tokens, report.Sparsity(),
                          report.PaddingPerToken());
    table += ListsText(report.lengths) + "\n";
  }
  return table;
}

std::string ToSvg(const SplitOptions& options, const std::vector<SplitReport>& sweep) {
  chart::Curve cells{"cells", {}};
  chart::Curve tokens{"tokens", {}};
  chart::Curve share{"", {}};
  cells.dots = tokens.dots = share.dots = true;
  for (const SplitReport& report : sweep) {
    const auto parts = static_cast<double>(report.parts.size());
    cells.points.push_back({parts, static_cast<double>(report.padding + report.tokens)});
    tokens.points.push_back({parts, static_cast<double>(report.tokens)});
    share.points.push_back({parts, report.Sparsity()});
  }
  const chart::Axis parts{.label = "sub-batches of a step", .whole = true, .begin = 1};
  return chart::ToSvg(
      {{.title = "Cells that a step computes",
        .x = parts,
        .y = {.label = "cells", .whole = true},
        .curves = {std::move(cells), std::move(tokens)}},
       {.title = "Share of padding in these cells",
        .x = parts,
        .y = {.label = "sparsity: padding / cells"},
        .curves = {std::move(share)},
        .threshold = chart::Threshold{
            options.max_sparsity, absl::StrFormat("--max-sparsity %g", options.max_sparsity)}}});
}

}  // namespace penstock::split
