#include "launcher/console.h"

#include <absl/strings/str_split.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "common/json_text.h"
#include "common/log.h"
#include "common/version.h"
#include "launcher/machine.h"

namespace penstock::launcher {
namespace {

// The name that GET /v1/models and GET /info show.
std::string ModelName(const options::Values& values) {
  const std::string& served = values.GetString("served-model-name");
  if (!served.empty()) return served;
  const std::string& hub = values.GetString("hub-model-id");
  return hub.empty() ? values.GetString("model-id") : hub;
}

// Where a client on this machine reaches the server.
std::string LocalAddress(std::string_view address) {
  for (const auto& [wildcard, local] :
       {std::pair<std::string_view, std::string_view>{"0.0.0.0:", "127.0.0.1:"},
        {"[::]:", "[::1]:"}}) {
    if (address.starts_with(wildcard)) {
      return std::string(local) + std::string(address.substr(wildcard.size()));
    }
  }
  return std::string(address);
}

bool NeedsKey(const options::Values& values) {
  return !values.GetString("api-key").empty() || !values.GetString("api-keys-file").empty();
}

// Arguments of curl for a server with a key or TLS. curl does not check the name in the
// certificate, which need not be the local address.
std::string CurlOptions(const options::Values& values) {
  std::string text;
  if (!values.GetString("tls-cert").empty()) text += " -k";
  if (!values.GetString("tls-client-ca").empty()) text += " --cert YOUR.pem --key YOUR.key";
  if (NeedsKey(values)) text += " -H 'Authorization: Bearer YOUR_KEY'";
  return text;
}

struct Example {
  std::string_view path;
  std::string_view body;
};

// A request in the dialect that the server was started for.
Example ExampleFor(const options::Values& values) {
  const std::string& profile = values.GetString("api-profile");
  // --batching belongs to the effective-batching interface.
  if (profile == "penstock" && values.IsSet("batching")) {
    return {"/inference", R"({"prompt":"Once upon a time","num_tokens":60})"};
  }
  return {profile == "djl" ? "/invocations" : "/generate",
          R"({"inputs":"Once upon a time","parameters":{"max_new_tokens":60}})"};
}

// Where the page is and how to chat, for a user at a terminal.
std::string NextSteps(const options::Values& values, const std::string& url,
                      const std::string& penstock) {
  std::string text;
  if (values.GetBool("console") && values.GetString("api-profile") != "tgi") {
    text += "  page:    " + url + "/\n";
  }
  // The chat has no certificate of its own.
  if (!values.GetString("tls-client-ca").empty()) return text;
  text += "  chat:    " + penstock + " chat";
  if (url != "http://127.0.0.1:3000") text += " --url " + url;
  if (!values.GetString("tls-cert").empty()) text += " --insecure";
  if (NeedsKey(values)) text += " --api-key YOUR_KEY";
  return text + "\n";
}

// "penstock" where a shell finds it, else its path.
std::string PenstockCommand() {
  const absl::StatusOr<std::string> folder = ProgramFolder();
  const char* path = std::getenv("PATH");
  if (!folder.ok() || path == nullptr) return "penstock";
  for (const absl::string_view entry : absl::StrSplit(path, ':')) {
    if (entry == *folder) return "penstock";
  }
  return *folder + "/penstock";
}

// "Penstock 1.2.3 is ready after 4.5 s"
std::string ReadyText(std::chrono::nanoseconds startup) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", std::chrono::duration<double>(startup).count());
  return "Penstock " + std::string(Version()) + " is ready after " + seconds + " s";
}

std::string Url(const options::Values& values, std::string_view address) {
  return (values.GetString("tls-cert").empty() ? "http://" : "https://") + std::string(address);
}

// 2026-01-31T12:00:00.000Z
std::string Timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto since = now.time_since_epoch();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm date = {};
  ::gmtime_r(&seconds, &date);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &date);
  const auto part = std::chrono::floor<std::chrono::milliseconds>(since).count() % 1000;
  std::snprintf(text + size, sizeof text - size, ".%03dZ", static_cast<int>(part));
  return text;
}

}  // namespace

std::chrono::nanoseconds ProgressInterval() {
  return ::isatty(STDERR_FILENO) != 0 ? std::chrono::seconds(1) : std::chrono::seconds(10);
}

std::string ReadyBlock(const options::Values& values, std::string_view address,
                       std::chrono::nanoseconds startup, const std::string& penstock) {
  const std::int64_t ranks = values.GetInt("num-shard");
  const std::int64_t replicas = values.GetInt("num-replicas");
  std::string text = "\n" + ReadyText(startup) + ".\n";
  text += "  model:   " + ModelName(values) + ", " + std::to_string(ranks) +
          (ranks == 1 ? " shard" : " shards");
  if (replicas > 1) text += " in each of " + std::to_string(replicas) + " replicas";
  text += "\n";
  text += "  address: " + Url(values, address) + "\n";
  const std::string local = Url(values, LocalAddress(address));
  if (!penstock.empty()) text += NextSteps(values, local, penstock);
  const Example example = ExampleFor(values);
  text += "  try it:  curl " + local + std::string(example.path) +
          " -H 'Content-Type: application/json'" + CurlOptions(values) + " -d '" +
          std::string(example.body) + "'\n\n";
  return text;
}

std::string ReadyRecord(const options::Values& values, std::string_view address,
                        std::chrono::nanoseconds startup) {
  return JsonText({{"timestamp", Timestamp()},
                   {"level", "info"},
                   {"component", "launcher"},
                   {"message", ReadyText(startup)},
                   {"model", ModelName(values)},
                   {"shards", values.GetInt("num-shard")},
                   {"replicas", values.GetInt("num-replicas")},
                   {"address", Url(values, address)}}) +
         "\n";
}

bool IsLogRecord(std::string_view line, bool json) {
  if (json) return line.starts_with("{\"timestamp\":\"") && line.ends_with('}');
  constexpr std::string_view kTime = "0000-00-00T00:00:00.000Z ";
  if (line.size() <= kTime.size()) return false;
  for (std::size_t i = 0; i < kTime.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(line[i])) != 0;
    if (kTime[i] == '0' ? !digit : line[i] != kTime[i]) return false;
  }
  return true;
}

Console::Console(const options::Values& values)
    : values_(values),
      json_(values.GetString("log-format") == "json"),
      progress_(ProgressInterval()),
      began_(std::chrono::steady_clock::now()) {}

void Console::OnLine(const ChildSpec& child, std::string_view line) {
  if (!IsLogRecord(line, json_)) return log::Info(child.name + " | " + std::string(line));
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

void Console::OnProgress(const ChildSpec& child, const ProgressNotice& progress) {
  const std::optional<std::string> line =
      progress_.Line(child.name, progress, std::chrono::steady_clock::now());
  if (line.has_value()) log::Info(child.name + ": " + *line);
}

void Console::OnReady(std::string_view address) {
  const auto startup = std::chrono::steady_clock::now() - began_;
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  const std::string text =
      json_ ? ReadyRecord(values_, address, startup)
            : ReadyBlock(values_, address, startup, terminal ? PenstockCommand() : "");
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Console::OnStopping(std::string_view reason) { log::Info("stopping: " + std::string(reason)); }

void Console::OnGroup(GroupNews kind, std::string_view news) {
  if (kind == GroupNews::kTrouble) return log::Warn(news);
  log::Info(news);
}

void Console::Report(const Outcome& outcome) const {
  if (outcome.error.empty()) return log::Info("stopped");
  if (!outcome.last_lines.empty()) log::Error("last lines of " + outcome.culprit + ":");
  for (const std::string& line : outcome.last_lines) {
    log::Error("  " + outcome.culprit + " | " + line);
  }
  if (json_) return log::Error(outcome.error);
  const std::string program(values_.program().name);
  std::fprintf(stderr, "%s: error: %s\n", program.c_str(), outcome.error.c_str());
}

}  // namespace penstock::launcher
