#include "tools/bench/awscurl/options.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "common/status.h"

namespace penstock::bench::awscurl {
namespace {

absl::Status Bad(std::string_view option, std::string_view why) {
  return absl::InvalidArgumentError("--preset awscurl: " + std::string(option) + ": " +
                                    std::string(why));
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Bad(path, "cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// About an option that is not taken.
std::string_view WhyNot(std::string_view option) {
  if (option == "-n") return "is not offered: requests are not signed";
  if (option == "--delay") return "is not offered: all clients start at once";
  if (option == "--extra-parameters") return "is not offered: bodies are sent as given";
  if (option == "-j") return "is not offered: the tokens of an answer are found by its form";
  return "unknown option; --help lists the options";
}

// A folder with one body per file, or a file with one body per line.
absl::Status ReadDataset(const std::string& path, std::vector<std::string>& bodies) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
      PENSTOCK_ASSIGN_OR_RETURN(bodies.emplace_back(), ReadWhole(file));
    }
  } else {
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) bodies.push_back(line);
    }
  }
  return bodies.empty() ? Bad("--dataset", path + " holds no body") : absl::OkStatus();
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  absl::StatusOr<Options> Run() {
    for (; at_ < arguments_.size(); ++at_) {
      PENSTOCK_RETURN_IF_ERROR(Take());
    }
    if (options_.server.host.empty()) return Bad("URL", "is missing: http://HOST[:PORT]/PATH");
    if (options_.bodies.empty()) options_.bodies.emplace_back();
    if (!options_.bodies.front().empty() && !method_given_) options_.method = "POST";
    return std::move(options_);
  }

 private:
  absl::Status Take() {
    const std::string& argument = arguments_[at_];
    if (!argument.starts_with('-')) return TakeUrl(argument);
    const std::size_t equals = argument.starts_with("--") ? argument.find('=') : argument.npos;
    name_ = argument.substr(0, equals);
    inline_value_ =
        equals == argument.npos ? std::nullopt : std::optional(argument.substr(equals + 1));
    if (Is("-t", "--tokens")) return Flag(options_.count_tokens);
    if (Is("-P", "--json-output")) return Flag(options_.json);
    if (Is("-k", "--insecure")) return Flag(options_.insecure);
    bool ignored = false;
    for (const auto& [brief, full] : {std::pair("-i", "--include"), std::pair("-v", "--verbose"),
                                      std::pair("-s", "--silent")}) {
      if (Is(brief, full)) return Flag(ignored);
    }
    PENSTOCK_ASSIGN_OR_RETURN(const std::string value, Value());
    return TakeValue(value);
  }

  absl::Status TakeValue(const std::string& value) {
    if (Is("-c", "--clients")) return Number(value, options_.clients);
    if (Is("-N", "--repeat")) return Number(value, options_.repeat);
    if (Is("", "--connect-timeout")) return Seconds(value, options_.timeout);
    if (Is("", "--duration")) return Seconds(value, options_.duration);
    if (Is("", "--dataset")) {
      options_.bodies.clear();
      return ReadDataset(value, options_.bodies);
    }
    if (Is("-H", "--header")) return Header(value);
    if (Is("-d", "--data") || Is("", "--data-raw")) return Data(value);
    if (Is("-X", "--request")) {
      method_given_ = true;
      options_.method = value;
    } else if (Is("-o", "--output")) {
      options_.output = value;
    } else if (Is("", "--json-path")) {
      options_.json_path = value;
      options_.json = true;
    } else if (!Is("", "--seed")) {  // nothing is drawn
      return Bad(name_, WhyNot(name_));
    }
    return absl::OkStatus();
  }

  bool Is(std::string_view brief, std::string_view full) const {
    return name_ == full || (!brief.empty() && name_ == brief);
  }

  absl::Status Flag(bool& out) {
    out = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Value() {
    if (inline_value_) return *inline_value_;
    if (at_ + 1 >= arguments_.size()) return Bad(name_, "a value is missing");
    return arguments_[++at_];
  }

  absl::Status Number(const std::string& text, std::uint32_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error == std::errc() && end == text.data() + text.size() && out >= 1 && out <= 1'000'000) {
      return absl::OkStatus();
    }
    return Bad(name_, text + " must be an integer from 1 to 1000000");
  }

  absl::Status Seconds(const std::string& text, std::chrono::seconds& out) {
    std::uint32_t number = 0;
    PENSTOCK_RETURN_IF_ERROR(Number(text, number));
    out = std::chrono::seconds(number);
    return absl::OkStatus();
  }

  absl::Status Header(const std::string& value) {
    const std::size_t colon = value.find(':');
    if (colon == value.npos) return Bad(name_, value + " must be `Name: value`");
    const std::size_t begin = value.find_first_not_of(' ', colon + 1);
    options_.headers.emplace_back(value.substr(0, colon),
                                  begin == value.npos ? "" : value.substr(begin));
    return absl::OkStatus();
  }

  absl::Status Data(const std::string& value) {
    if (!options_.bodies.empty()) return absl::OkStatus();  // a dataset goes before
    std::string body = value;
    if (value.starts_with('@') && name_ != "--data-raw") {
      PENSTOCK_ASSIGN_OR_RETURN(body, ReadWhole(value.substr(1)));
    }
    options_.bodies.push_back(std::move(body));
    return absl::OkStatus();
  }

  absl::Status TakeUrl(const std::string& text) {
    const auto url = ParseServerUrl(text);
    if (!url) return Bad("URL", text + " must be http://HOST[:PORT]/PATH or https://…");
    options_.server = *url;
    if (options_.server.target.empty()) options_.server.target = "/";
    return absl::OkStatus();
  }

  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  std::string name_;
  std::optional<std::string> inline_value_;
  bool method_given_ = false;
  Options options_;
};

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments,
                                     const std::string& tokenizer) {
  PENSTOCK_ASSIGN_OR_RETURN(Options options, Parser(arguments).Run());
  options.tokenizer = tokenizer;
  return options;
}

std::string HelpText() {
  return "Usage: penstock-bench --preset awscurl [options] URL\n"
         "A closed loop with the options and the report of DJL's awscurl. Every client keeps one\n"
         "connection.\n\n"
         "Options:\n"
         "  -c, --clients N          Clients at the same time. [1]\n"
         "  -N, --repeat N           Requests of each client. [1]\n"
         "      --duration SECONDS   Time for which clients send requests, in place of -N.\n"
         "  -X, --request METHOD     Method. Unset: GET, or POST with a body.\n"
         "  -H, --header 'A: b'      Header of each request.\n"
         "  -d, --data TEXT|@FILE    Body. --data-raw TEXT takes a leading @ as it is.\n"
         "      --dataset PATH       Bodies: a folder of files, or a file with one a line.\n"
         "      --connect-timeout S  Longest time in seconds to connect and to read. [30]\n"
         "  -k, --insecure           Do not check the certificate of an https server.\n"
         "  -t, --tokens             Count the tokens of the answers with the tokenizer of the\n"
         "                           model folder that TOKENIZER names; without it, count words.\n"
         "  -o, --output FILE        Files for the answers: FILE.0, FILE.1, ... by client.\n"
         "  -P, --json-output        Print the report as JSON. --json-path FILE writes it.\n";
}

}  // namespace penstock::bench::awscurl
