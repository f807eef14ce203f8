#include "tools/replay/what_if_page.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <string_view>

#include "tools/chart/svg.h"
#include "tools/replay/report.h"

namespace penstock::replay {
namespace {

struct Figure {
  std::string_view name;
  double (*of)(const sim::Summary&);
};

constexpr Figure kFigures[] = {
    {"time to first token, p50, ms", [](const sim::Summary& s) { return s.ttft_ms.p50; }},
    {"time to first token, p90, ms", [](const sim::Summary& s) { return s.ttft_ms.p90; }},
    {"time to first token, p99, ms", [](const sim::Summary& s) { return s.ttft_ms.p99; }},
    {"inter-token latency, p50, ms", [](const sim::Summary& s) { return s.inter_token_ms.p50; }},
    {"inter-token latency, p90, ms", [](const sim::Summary& s) { return s.inter_token_ms.p90; }},
    {"inter-token latency, p99, ms", [](const sim::Summary& s) { return s.inter_token_ms.p99; }},
    {"end to end, p50, ms", [](const sim::Summary& s) { return s.end_to_end_ms.p50; }},
    {"end to end, p99, ms", [](const sim::Summary& s) { return s.end_to_end_ms.p99; }},
    {"requests", [](const sim::Summary& s) { return static_cast<double>(s.requests); }},
    {"failed", [](const sim::Summary& s) { return static_cast<double>(s.failed); }},
    {"requests per second", [](const sim::Summary& s) { return s.requests_per_second; }},
    {"output tokens per second", [](const sim::Summary& s) { return s.tokens_per_second; }},
    {"objective met, %", [](const sim::Summary& s) { return 100 * s.attainment; }},
    {"prompt tokens from the cache, %", [](const sim::Summary& s) { return 100 * s.hit_rate; }},
    {"preemptions", [](const sim::Summary& s) { return static_cast<double>(s.preemptions); }},
};

std::string Shown(double value) {
  return absl::StrFormat(value == static_cast<double>(static_cast<long>(value)) ? "%.0f" : "%.2f",
                         value);
}

constexpr char kStyle[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;"
    "color:#1c2430;background:#fff}table{border-collapse:collapse;width:100%}"
    "td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #d8dde3}"
    "td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}"
    "@media(prefers-color-scheme:dark){body{color:#e4e8ee;background:#14181d}"
    "td,th{border-color:#37404a}}";

}  // namespace

std::string ToText(const std::vector<Column>& columns) {
  std::string text = absl::StrFormat("%-32s", "");
  for (const Column& column : columns) text += absl::StrFormat(" %12s", column.name);
  text += "\n";
  for (const Figure& figure : kFigures) {
    text += absl::StrFormat("%-32s", figure.name);
    for (const Column& column : columns) {
      text += absl::StrFormat(" %12s", Shown(figure.of(column.summary)));
    }
    text += "\n";
  }
  return text;
}

std::string ToJson(const std::vector<Column>& columns) {
  std::string text;
  for (const Column& column : columns) {
    std::string object = ToJson(column.summary);
    object.pop_back();  // its line end
    absl::StrAppend(&text, text.empty() ? "{" : ", ", "\"", column.name, "\": ", object);
  }
  return text + "}\n";
}

std::string ToPage(const std::vector<Column>& columns, const std::vector<std::string>& notes) {
  std::string page = absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>What if</title>\n<style>",
      kStyle, "</style>\n<h1>What if</h1>\n");
  for (const std::string& note : notes) {
    absl::StrAppend(&page, "<p>", chart::SvgEscape(note), "</p>\n");
  }
  page += "<table>\n<tr><th></th>";
  for (const Column& column : columns) {
    absl::StrAppend(&page, "<th>", chart::SvgEscape(column.name), "</th>");
  }
  page += "</tr>\n";
  for (const Figure& figure : kFigures) {
    page += "<tr><td>" + std::string(figure.name) + "</td>";
    for (const Column& column : columns) {
      absl::StrAppend(&page, "<td>", Shown(figure.of(column.summary)), "</td>");
    }
    page += "</tr>\n";
  }
  page += "</table>\n";
  std::vector<NamedRun> runs;
  for (const Column& column : columns) {
    runs.push_back({column.name, &column.result, chart::SeriesColour(runs.size())});
  }
  return page + ToSvg(runs) + "</html>\n";
}

}  // namespace penstock::replay
