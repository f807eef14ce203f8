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
#include <vector>

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

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The values that an option accepts.
struct ValueType {
  constexpr ValueType(Type type, double min = -kNoLimit, double max = kNoLimit)  // NOLINT
      : type(type), min(min), max(max) {}

  Type type;
  double min;  // seconds for kDuration, bytes for kBytes
  double max;
  std::string_view choices = {};  // kEnum: "a|b|c", canonical spellings
  // kEnum: maps other spellings to a canonical one.
  std::optional<std::string> (*canonical)(std::string_view) = nullptr;
};

constexpr ValueType Int(double min, double max = kNoLimit) { return {Type::kInt, min, max}; }
constexpr ValueType Float(double min, double max = kNoLimit) { return {Type::kFloat, min, max}; }
constexpr ValueType Bytes(double min, double max = kNoLimit) { return {Type::kBytes, min, max}; }
constexpr ValueType Memory(double min) { return {Type::kMemory, min}; }
constexpr ValueType Duration(double min, double max) { return {Type::kDuration, min, max}; }
constexpr ValueType IntList(double min, double max = kNoLimit) { return {Type::kList, min, max}; }
constexpr ValueType OneOf(std::string_view choices,
                          std::optional<std::string> (*canonical)(std::string_view) = nullptr) {
  ValueType type = Type::kEnum;
  type.choices = choices;
  type.canonical = canonical;
  return type;
}

// What few rows need beside name, type, default and help.
struct OptionTraits {
  char short_name = 0;
  // The value that `--name` alone gives; empty: a value is required. A kBool option has "true".
  std::string_view flag_text = {};
  bool allow_auto = false;  // "auto" is a value: the program decides
  Components required = 0;  // the programs that cannot start without it
  bool advanced = false;    // shown by --help-all only
  // The programs that take it. A tool takes all rows of its own table.
  Components components = kLauncher | kRouter;
  // "host|address": other long names, on the command line and in YAML.
  std::string_view aliases = {};
  // For an option of another server that Penstock refuses: what to do instead. Values in `harmless`
  // ("0|off") are accepted, since they need no support.
  std::string_view refusal = {};
  std::string_view harmless = {};
  // For an option without effect: the reason, logged unless the value is in `harmless`.
  std::string_view no_effect = {};
  bool set_by_launcher = false;  // for its router; not in its own help
  bool secret = false;           // never printed; children get it in their environment
};

struct OptionSpec : ValueType, OptionTraits {
  constexpr OptionSpec(std::string_view name, ValueType type, std::string_view default_text,
                       std::string_view help, OptionTraits traits = {})
      : ValueType(type), OptionTraits(traits), name(name), default_text(default_text), help(help) {
    if (type.type == Type::kBool) flag_text = "true";
  }

  std::string_view name;  // "max-step-tokens": PENSTOCK_MAX_STEP_TOKENS, max_step_tokens in YAML
  std::string_view default_text;  // empty: unset
  std::string_view help;
  std::string_view group = {};  // set by the table from the file of rows
};

// The parts of "a|b|c".
std::vector<std::string_view> Pieces(std::string_view text);

}  // namespace penstock::options
