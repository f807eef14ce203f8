// The command line of DJL's awscurl, for `penstock-bench --preset awscurl`: its names, its meaning.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/server_stream.h"

namespace penstock::bench::awscurl {

struct Options {
  ServerUrl server;
  bool insecure = false;  // the certificate of an https server is not checked
  std::string method = "GET";
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> bodies;  // taken in turn; at least one, perhaps empty
  std::uint32_t clients = 1;
  std::uint32_t repeat = 1;          // per client; clients * repeat are drawn from one counter
  std::chrono::seconds timeout{30};  // to connect and to read
  std::chrono::seconds duration{0};  // 0: by count
  bool count_tokens = false;
  std::string output;     // answers go to OUTPUT.0, OUTPUT.1, … by client; empty: nowhere
  bool json = false;      // the report
  std::string json_path;  // file for it
  std::string tokenizer;  // folder of TOKENIZER; empty: words are counted
};

// `arguments` without the program's name and without --preset awscurl. `tokenizer` is the
// variable TOKENIZER. InvalidArgument names the wrong or unsupported option.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments,
                                     const std::string& tokenizer);

// What --help prints.
std::string HelpText();

}  // namespace penstock::bench::awscurl
