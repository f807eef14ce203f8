// One row of the options table. The row defines an option everywhere: on the command line, as a
// PENSTOCK_* variable and a YAML key, in --help, --print-config and docs/api/options.md.
//
// To add an option, add one row to the file of its group in common/options/rows/, then bring the
// page up to date:
//   PENSTOCK_UPDATE_DOCS=1 build/tests/common_options_test
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::options {

enum class Type {
  kString,
  kPath,
  kModel,  // a folder or a Hugging Face model id
  kInt,
  kFloat,
  kBool,      // --x, --x=false, --no-x
  kBytes,     // 1048576, 1MB (10^6), 1MiB or 1M (2^20)
  kMemory,    // bytes as above, or a share: 0.5, 50%
  kDuration,  // 90 (seconds), 90s, 250ms, 10us, 5m
  kEnum,
  kList,  // a,b or the option repeated; of integers where the row has a `min`
};

// A set of programs, as bits.
using Components = unsigned;
inline constexpr Components kLauncher = 1;
inline constexpr Components kRouter = 2;
inline constexpr Components kShard = 4;
inline constexpr Components kSimshard = 8;
inline constexpr Components kTool = 16;  // programs with a table of their own (penstock-bench, ...)
inline constexpr Components kAllComponents = kLauncher | kRouter | kShard | kSimshard | kTool;

struct OptionSpec {
  std::string_view name;  // "max-step-tokens": PENSTOCK_MAX_STEP_TOKENS, max_step_tokens in YAML
  char short_name = 0;
  Type type = Type::kString;
  std::string_view default_text = {};                     // empty: unset
  double min = -std::numeric_limits<double>::infinity();  // seconds for kDuration, bytes for kBytes
  double max = std::numeric_limits<double>::infinity();
  std::string_view choices = {};  // kEnum: "a|b|c", canonical spellings
  // kEnum: maps other spellings to a canonical one.
  std::optional<std::string> (*canonical)(std::string_view) = nullptr;
  bool allow_auto = false;  // "auto" is a value: the program decides
  std::string_view flag_text =
      {};                       // the value that `--name` alone gives; empty: a value is required
  Components required = 0;      // the programs that cannot start without it
  bool advanced = false;        // shown by --help-all only
  Components components = 0;    // the programs that take it
  std::string_view group = {};  // set by the table from the file of rows
  std::string_view aliases =
      {};  // "host|address": other long names, on the command line and in YAML
  // For an option of another server that Penstock refuses: what to do instead. Values in `harmless`
  // ("0|off") are accepted, since they need no support.
  std::string_view refusal = {};
  std::string_view harmless = {};
  // For an option without effect: the reason, logged unless the value is in `harmless`.
  std::string_view no_effect = {};
  bool secret = false;  // never printed; children get it in their environment
  std::string_view help;
};

}  // namespace penstock::options
