#include "tools/bench/effective/command.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <string>

#include "common/json_text.h"
#include "common/status.h"
#include "tools/bench/effective/comparison.h"
#include "tools/bench/effective/options.h"

namespace penstock::bench::effective {
namespace {

int Complain(const absl::Status& status, int code) {
  std::fprintf(stderr, "penstock-bench effective: error: %s\n", Message(status).c_str());
  return code;
}

int Unreachable(const absl::Status& status) {
  Complain(status, 1);
  std::fprintf(stderr,
               "is a server there? `deploy/serve-effective nobatch|static|dynamic` starts one; IP "
               "in .env, or --url, says where it is\n");
  return 1;
}

// Six significant digits; an object as "count 3, mean 0.5".
std::string FigureText(const boost::json::value& figure) {
  if (figure.is_string()) return std::string(figure.as_string());
  if (figure.is_double()) return NumberText(figure.as_double(), 6);
  if (!figure.is_object()) return JsonText(figure);
  std::string text;
  for (const auto& [key, value] : figure.as_object()) {
    text += (text.empty() ? "" : ", ") + std::string(key) + " " + FigureText(value);
  }
  return text;
}

// One line per figure, as effective-batching prints them.
int PrintStats(Client& client) {
  const auto stats = client.Fetch("GET", "/stats");
  if (!stats.ok()) return Unreachable(stats.status());
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(stats->body, error);
  if (stats->status != 200 || error || !value.is_object()) {
    return Complain(absl::UnavailableError("GET /stats: " + Description(*stats)), 1);
  }
  for (const auto& [key, figure] : value.as_object()) {
    if (key == "breakdown") continue;  // long
    std::printf("%s: %s\n", std::string(key).c_str(), FigureText(figure).c_str());
  }
  return 0;
}

int RunOne(const Options& options) {
  Client client(options.address);
  const boost::json::object body = {{"prompt", *options.prompt},
                                    {"num_tokens", options.num_tokens}};
  const auto answer = client.Fetch("POST", "/inference", boost::json::serialize(body));
  if (!answer.ok()) return Unreachable(answer.status());
  if (answer->status != 200) {
    return Complain(absl::UnavailableError("POST /inference: " + Description(*answer)), 1);
  }
  std::printf("%s\n", answer->body.c_str());
  return PrintStats(client);
}

// As the client of effective-batching does: a run against a server, then its /stats.
int RunAttached(const Options& options) {
  Client client(options.address);
  if (const auto there = client.Fetch("DELETE", "/stats"); !there.ok()) {
    return Unreachable(there.status());
  }
  Report report;
  report.shape = options.shape;
  report.repeats = options.repeats;
  report.runs.push_back({"server", {}});
  for (std::uint32_t r = 0; r < options.repeats; ++r) {
    TraceShape shape = options.shape;
    shape.seed += r;
    auto run = client.Replay(MakeTrace(shape));
    if (!run.ok()) return Unreachable(run.status());
    report.runs.front().runs.push_back(*std::move(run));
  }
  report.summaries.push_back(Summarise(report.runs.front()));
  report.checks = Compare(report.runs, report.summaries);
  std::printf("%s\n", ToTable(report.summaries).c_str());
  const int printed = PrintStats(client);
  if (!options.output.empty()) {
    if (const absl::Status made = MakeFolder(options.output); !made.ok()) return Complain(made, 1);
    const absl::Status written = WriteReport(options.output, report);
    if (!written.ok()) return Complain(written, 1);
  }
  if (report.summaries.front().failed == 0) return printed;
  return Complain(absl::UnavailableError(report.checks.front().measured), 1);
}

int RunCompared(const Options& options) {
  const absl::StatusOr<Report> report = RunComparison(options);
  if (!report.ok()) {
    const bool unreachable = !options.attached.empty() && absl::IsUnavailable(report.status());
    return unreachable ? Unreachable(report.status()) : Complain(report.status(), 1);
  }
  const absl::Status written = WriteReport(options.output, *report);
  if (!written.ok()) return Complain(written, 1);
  std::printf("%s\n%s\nwritten to %s/index.html\n", ToTable(report->summaries).c_str(),
              ToText(report->checks).c_str(), options.output.c_str());
  const auto failed = [](const ModeSummary& summary) { return summary.failed > 0; };
  if (std::ranges::any_of(report->summaries, failed)) return 1;
  return options.check && !std::ranges::all_of(report->checks, &Check::passed) ? 1 : 0;
}

}  // namespace

int RunCommand(int argc, const char* const* argv) {
  const CommandLine line = ReadCommandLine(argc, argv);
  if (!line.options.ok()) {
    if (absl::IsCancelled(line.options.status())) return line.exit_code;
    return Complain(line.options.status(), 2);
  }
  const Options& options = *line.options;
  if (options.prompt) return RunOne(options);
  if (options.launcher_options || !options.attached.empty()) return RunCompared(options);
  return RunAttached(options);
}

}  // namespace penstock::bench::effective
