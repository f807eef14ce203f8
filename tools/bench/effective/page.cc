#include "tools/bench/effective/page.h"

#include <absl/strings/str_format.h>

#include "tools/bench/effective/latency_svg.h"
#include "tools/chart/svg.h"

namespace penstock::bench::effective {
namespace {

using chart::SvgEscape;

constexpr std::string_view kPageHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>Effective batching</title>\n"
    "<style>\n"
    ":root{color-scheme:light dark;--ink:#1f2328;--soft:#57606a;--line:#d8dee4;--ground:#fff;"
    "--yes:#1a7f37;--no:#cf222e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#30363d;"
    "--ground:#0d1117;--yes:#3fb950;--no:#f85149}}\n"
    "body{font-family:sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:var(--ink);"
    "background:var(--ground)}\n"
    "img{width:100%}figure{margin:1.5em 0}figcaption,.notes{color:var(--soft)}\n"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.25em .5em;vertical-align:top;"
    "border-bottom:1px solid var(--line)}\n"
    ".figures{font-size:.8em}.figures td,.figures th{text-align:right;padding:.25em}"
    ".figures th:first-child,.figures th:nth-child(2){text-align:left;font-weight:normal}\n"
    "pre{white-space:pre-wrap}.yes{color:var(--yes)}.no{color:var(--no);font-weight:bold}\n"
    "</style></head><body><h1>Effective batching</h1>\n";

// A row per figure and a column per mode, which fits a narrow window too.
std::string FiguresHtml(const std::vector<ModeSummary>& summaries) {
  std::string html = "<table class=\"figures\">\n";
  const TableCells rows = ToCells(summaries);
  for (std::size_t figure = 0; figure < rows.front().size(); ++figure) {
    html += "<tr>";
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const char* const tag = figure == 0 || r < 2 ? "th" : "td";
      absl::StrAppendFormat(&html, "<%s>%s</%s>", tag, SvgEscape(rows[r][figure]), tag);
    }
    html += "</tr>\n";
  }
  return html + "</table>\n<p class=\"notes\">" + SvgEscape(kTableNotes) + "</p>\n";
}

std::string ChecksHtml(const std::vector<Check>& checks) {
  if (checks.empty()) return "";
  std::string html =
      "<h2>Expected and measured</h2>\n"
      "<table><tr><th></th><th>expected</th><th>measured</th></tr>\n";
  for (const Check& check : checks) {
    const char* const passed = check.passed ? "yes" : "no";
    absl::StrAppendFormat(&html, "<tr><td class=\"%s\">%s</td><td>%s</td><td>%s</td></tr>\n",
                          passed, passed, SvgEscape(check.what), SvgEscape(check.measured));
  }
  return html + "</table>\n";
}

std::string Figure(std::string_view file, const std::string& text) {
  return absl::StrFormat(
      "<figure><img src=\"%s\" alt=\"%s\"><figcaption>%s</figcaption></figure>\n", file, file,
      text);
}

std::string TimelinesHtml(const Report& report) {
  if (report.timelines.empty()) return "";
  return "<h2>Timeline of the first repeat</h2>\n" +
         Figure("timeline.svg",
                "A line per request, in the order in which the requests reached the server: grey "
                "while it waits, then its prompt, then coloured while it generates. Below each "
                "mode is the number of requests in each step. Open the picture itself and point at "
                "a line to read its numbers.") +
         Figure("steps.svg",
                "A column per step, from the same moment of the trace in each mode. A coloured "
                "cell says that the request got a token in the step.");
}

}  // namespace

std::string ToPage(const Report& report) {
  std::string html = std::string(kPageHead) + "<p>" + SvgEscape(LoadText(report)) + "</p>\n" +
                     FiguresHtml(report.summaries) + ChecksHtml(report.checks);
  html += "<h2>Latency</h2>\n" + Figure("latency.svg", LatencyCaption(report)) +
          Figure("latency-by-mode.svg",
                 "The same with a panel for each mode: own scale, and the straight line through "
                 "the means of all lengths.") +
          TimelinesHtml(report);
  if (!report.commands.empty()) {
    html += "<h2>Servers</h2>\n<pre>";
    for (const std::string& command : report.commands) html += SvgEscape(command) + "\n";
    html += "</pre>\n";
  }
  return html + "<p>Numbers: stats.txt, requests.csv and a CSV file per mode.</p></body></html>\n";
}

}  // namespace penstock::bench::effective
