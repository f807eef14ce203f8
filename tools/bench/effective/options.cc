#include "tools/bench/effective/options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/bad_option.h"
#include "common/options/values.h"
#include "common/status.h"
#include "tools/bench/effective/option_rows.h"

namespace penstock::bench::effective {
namespace {

constexpr std::string_view kModes[] = {"nobatch", "static", "static-window", "dynamic"};

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

template <class T>
bool ReadNumber(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

absl::StatusOr<std::vector<std::uint32_t>> ReadTokens(const std::vector<std::string>& texts) {
  std::vector<std::uint32_t> tokens;
  for (const std::string& text : texts) {
    std::uint32_t count = 0;
    if (!ReadNumber(text, count) || count < 1) {
      return BadOption("numtokens-range", text, "numbers of tokens from 1, for example 1,25,100");
    }
    tokens.push_back(count);
  }
  return tokens;
}

absl::StatusOr<std::string> ReadMode(const char* option, const std::string& mode) {
  if (std::ranges::find(kModes, mode) != std::end(kModes)) return mode;
  return BadOption(option, mode, "nobatch, static, static-window or dynamic");
}

// MODE=REST
absl::StatusOr<std::pair<std::string, std::string>> ReadPair(const char* option,
                                                             const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return BadOption(option, text, "MODE=VALUE, for example dynamic=http://127.0.0.1:8500");
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::string mode, ReadMode(option, text.substr(0, equals)));
  return std::pair(std::move(mode), text.substr(equals + 1));
}

absl::Status ReadAttached(const options::Values& values, Options& options) {
  for (const std::string& text : values.GetList("attach")) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto pair, ReadPair("attach", text));
    PENSTOCK_ASSIGN_OR_RETURN(Address address, ParseAddress(pair.second));
    options.attached.push_back({pair.first, std::move(address), ""});
  }
  for (const std::string& text : values.GetList("records")) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto pair, ReadPair("records", text));
    const auto found = std::ranges::find(options.attached, pair.first, &Attached::mode);
    if (found == options.attached.end()) {
      return BadOption("records", text, "MODE=FILE of a mode that --attach names");
    }
    found->record = pair.second;
  }
  return absl::OkStatus();
}

// --url, else IP of the environment, else of the .env file, else this machine.
absl::StatusOr<Address> FindAddress(const options::Values& values) {
  if (values.HasValue("url")) return ParseAddress(values.GetString("url"));
  if (const char* ip = std::getenv("IP"); ip != nullptr && *ip != '\0') return ParseAddress(ip);
  const std::string& path = values.GetString("env-file");
  std::ifstream file(path);
  if (!file) {
    if (!values.IsSet("env-file")) return Address();
    return BadOption("env-file", path, "a readable file with a line IP=ADDRESS");
  }
  std::ostringstream text;
  text << file.rdbuf();
  const std::optional<std::string> ip = FindInEnv(text.str(), "IP");
  if (ip && !ip->empty()) return ParseAddress(*ip);
  if (!values.IsSet("env-file")) return Address();
  return BadOption("env-file", path, "a file with a line IP=ADDRESS");
}

absl::StatusOr<TraceShape> ReadShape(const options::Values& values) {
  TraceShape shape;
  const std::string& preset = values.GetString("preset");
  if (preset == "readme") shape.preset = Preset::kReadme;
  if (preset == "head") shape.preset = Preset::kHead;
  shape.samples = static_cast<std::uint32_t>(values.GetInt("numsamples"));
  shape.rate = values.GetDouble("rate");
  shape.wait = values.GetDouble("wait");
  shape.seed = static_cast<std::uint64_t>(values.GetInt("seed"));
  if (values.GetString("selection") == "descend") shape.selection = Selection::kDescend;
  PENSTOCK_ASSIGN_OR_RETURN(shape.num_tokens, ReadTokens(values.GetList("numtokens-range")));
  return shape;
}

absl::Status ReadServers(const options::Values& values, Options& options) {
  PENSTOCK_RETURN_IF_ERROR(ReadAttached(values, options));
  PENSTOCK_ASSIGN_OR_RETURN(options.address, FindAddress(values));
  for (const std::string& mode : values.GetList("modes")) {
    PENSTOCK_ASSIGN_OR_RETURN(options.modes.emplace_back(), ReadMode("modes", mode));
  }
  options.launcher = values.GetString("launcher");
  if (options.launcher.empty()) {
    std::error_code ignored;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    options.launcher = (self.parent_path() / "penstock-launcher").string();
  }
  const auto timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(values.GetDuration("timeout"));
  const auto complete = [&](Address& address) {
    address.api_key = values.GetString("api-key");
    address.timeout = timeout;
  };
  complete(options.address);
  for (Attached& attached : options.attached) complete(attached.address);
  if (values.IsSet("modes") && !options.launcher_options) {
    return absl::InvalidArgumentError(
        "--modes: starts servers; give the launcher's options after `--`, at least `-- --model-id "
        "MODEL`");
  }
  if (options.launcher_options && !options.attached.empty()) {
    return absl::InvalidArgumentError(
        "--attach: must not come with launcher options after `--`; give one of them");
  }
  return absl::OkStatus();
}

absl::StatusOr<Options> ToOptions(const options::Values& values,
                                  std::optional<std::vector<std::string>> launcher_options) {
  Options options;
  options.launcher_options = std::move(launcher_options);
  PENSTOCK_ASSIGN_OR_RETURN(options.shape, ReadShape(values));
  PENSTOCK_RETURN_IF_ERROR(ReadServers(values, options));
  options.repeats = static_cast<std::uint32_t>(values.GetInt("repeats"));
  options.load = values.GetDouble("load");
  options.num_tokens = static_cast<std::uint32_t>(values.GetInt("numtokens"));
  if (values.HasValue("prompt")) options.prompt = values.GetString("prompt");
  options.output = values.GetString("output");
  options.check = values.GetBool("check");
  const bool several = options.launcher_options || !options.attached.empty();
  if (several && options.output.empty()) options.output = "effective-batching";
  return options;
}

}  // namespace

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = text;
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  Address address;
  const std::size_t colon = rest.rfind(':');
  address.host = std::string(rest.substr(0, colon));
  const bool port = colon != std::string_view::npos;
  if (address.host.empty() || address.host.find_first_of("/:") != std::string::npos ||
      (port && (!ReadNumber(rest.substr(colon + 1), address.port) || address.port == 0))) {
    return BadValue("address", text, "HOST, HOST:PORT or http://HOST:PORT");
  }
  return address;
}

std::optional<std::string> FindInEnv(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::optional<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    line = Trimmed(line);
    constexpr std::string_view kExport = "export ";
    if (line.starts_with(kExport)) line = Trimmed(std::string_view(line).substr(kExport.size()));
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    if (Trimmed(std::string_view(line).substr(0, equals)) != key) continue;
    std::string value = Trimmed(std::string_view(line).substr(equals + 1));
    const char quote = value.empty() ? '\0' : value.front();
    const std::size_t closing = value.find(quote, 1);
    if ((quote == '"' || quote == '\'') && closing != std::string::npos) {
      value = value.substr(1, closing - 1);
    } else {
      value = Trimmed(std::string_view(value).substr(0, value.find(" #")));
    }
    found = std::move(value);
  }
  return found;
}

CommandLine ReadCommandLine(int argc, const char* const* argv) {
  const auto end = std::find_if(argv, argv + argc,
                                [](const char* text) { return std::string_view(text) == "--"; });
  std::optional<std::vector<std::string>> launcher_options;
  if (end != argv + argc) launcher_options.emplace(end + 1, argv + argc);
  const auto program = options::ProgramWith(
      "penstock-bench effective",
      "effective-batching's client: one trace against nobatch, static and dynamic batching. "
      "Options after `--` are those of a penstock-launcher that is started for each mode.",
      OptionRows());
  const options::CommandLine line =
      options::ReadCommandLine(program, static_cast<int>(end - argv), argv);
  if (line.exit_code.has_value()) return {absl::CancelledError(), *line.exit_code};
  return {ToOptions(line.values, std::move(launcher_options)), 2};
}

}  // namespace penstock::bench::effective
