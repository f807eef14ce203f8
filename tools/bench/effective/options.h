// Command line of penstock-bench effective: the original client's flags, and those of a comparison.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/effective/client.h"
#include "tools/bench/effective/trace.h"

namespace penstock::bench::effective {

struct Attached {
  std::string mode;
  Address address;
  std::string record;  // the server's input log, for the timeline; empty: none
};

struct Options {
  TraceShape shape;
  std::uint32_t repeats = 1;
  double load = 2.5;  // of what nobatch serves; used when shape.rate is 0
  // One request instead of a run.
  std::optional<std::string> prompt;
  std::uint32_t num_tokens = 0;
  // The servers: started here (launcher_options), running (attached), or one (address).
  std::vector<std::string> modes;
  std::string launcher;
  std::optional<std::vector<std::string>> launcher_options;
  std::vector<Attached> attached;
  Address address;  // of the one
  std::string output;
  bool check = false;
};

struct CommandLine {
  absl::StatusOr<Options> options;  // Cancelled: everything was printed already
  int exit_code = 0;                // when there are no options
};

// `argv[0]` is the subcommand's name. Options of the launcher follow "--".
CommandLine ReadCommandLine(int argc, const char* const* argv);

// "HOST[:PORT]" or "http://HOST[:PORT]". The default is the original's port.
absl::StatusOr<Address> ParseAddress(const std::string& text);
// The value of `key` in the text of an .env file: KEY=VALUE lines, with `export`, quotes and
// comments as python-dotenv reads them.
std::optional<std::string> FindInEnv(const std::string& text, const std::string& key);

}  // namespace penstock::bench::effective
