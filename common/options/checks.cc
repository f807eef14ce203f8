#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/adapter_name.h"
#include "common/options/values.h"
#include "common/status.h"

namespace penstock::options {
namespace {

// `low` must be below (or at most) `high` where both have a value.
struct Ordering {
  std::string_view low;
  std::string_view high;
  bool strict;
};

constexpr Ordering kOrderings[] = {
    {"max-input-tokens", "max-total-tokens", true},
    {"max-total-tokens", "max-batch-total-tokens", false},
    {"max-batch-prefill-tokens", "max-batch-total-tokens", false},
    {"rank", "world-size", true},
};

void CheckOrdering(const Values& values, const Ordering& rule, std::vector<std::string>& errors) {
  for (std::string_view name : {rule.low, rule.high}) {
    if (Find(values.program(), name) == nullptr) return;
  }
  const std::optional<std::int64_t> low = values.FindInt(rule.low);
  const std::optional<std::int64_t> high = values.FindInt(rule.high);
  if (!low.has_value() || !high.has_value()) return;
  if (rule.strict ? *low < *high : *low <= *high) return;
  errors.push_back(absl::StrCat("--", std::string(rule.low), " ", *low, ": must be ",
                                rule.strict ? "below --" : "at most --", std::string(rule.high),
                                " ", *high));
}

// Whole prompts must fit into one step, or they would wait forever.
void CheckWholePrefill(const Values& values, std::vector<std::string>& errors) {
  for (std::string_view name : {"prefill", "max-input-tokens"}) {
    if (Find(values.program(), name) == nullptr) return;
  }
  if (values.GetString("prefill") != "whole") return;
  const std::optional<std::int64_t> input = values.FindInt("max-input-tokens");
  for (std::string_view name : {"max-step-tokens", "max-batch-prefill-tokens"}) {
    const std::optional<std::int64_t> budget = values.FindInt(name);
    if (!input.has_value() || !budget.has_value() || *input <= *budget) continue;
    errors.push_back(absl::StrCat("--max-input-tokens ", *input, ": must be at most --",
                                  std::string(name), " ", *budget, " with --prefill whole"));
  }
}

// SCHEME://HOST[:PORT] as browsers send it, or *.
bool IsOrigin(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (text == "*") return true;
  if (scheme == text.npos || scheme == 0) return false;
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && host.find_first_of("/?#@* ") == host.npos;
}

void CheckOrigins(const Values& values, std::vector<std::string>& errors) {
  constexpr std::string_view kName = "cors-allow-origin";
  if (Find(values.program(), kName) == nullptr) return;
  for (const std::string& origin : values.GetList(kName)) {
    if (IsOrigin(origin)) continue;
    errors.push_back(absl::StrCat("--", std::string(kName), " ", origin,
                                  ": must be * or SCHEME://HOST[:PORT] without a path or a slash "
                                  "at the end"));
  }
}

void CheckAdapters(const Values& values, std::vector<std::string>& errors) {
  constexpr std::string_view kName = "lora";
  if (Find(values.program(), kName) == nullptr) return;
  std::set<std::string> names;
  for (const std::string& text : values.GetList(kName)) {
    const auto adapter = ParseAdapterFolder(text);
    const bool twice = adapter.ok() && !names.insert(adapter->name).second;
    if (adapter.ok() && !twice) continue;
    errors.push_back(absl::StrCat("--", std::string(kName), " ", text, ": ",
                                  twice ? "the name is given twice" : Message(adapter.status())));
  }
}

// An option must not be set beside its former name.
void CheckFormerName(const Values& values, std::string_view former, std::string_view name,
                     std::vector<std::string>& errors) {
  if (Find(values.program(), former) == nullptr) return;
  if (!values.IsSet(former) || !values.IsSet(name)) return;
  errors.push_back(absl::StrCat("--", std::string(former), " ", values.TextOf(former), ": is --",
                                std::string(name), " by its former name; give --",
                                std::string(name), " alone"));
}

// Values that an option may have with --engine transformers.
struct EngineRule {
  std::string_view name;
  std::string_view values;  // "a|b"
};

constexpr EngineRule kEngineRules[] = {
    {"num-shard", "1"},
    {"world-size", "1"},
    {"device", "auto|cpu"},
    {"backend", "auto"},
    {"dtype", "auto|float32|bfloat16"},
    {"quantize", "none"},
    {"kv-cache-dtype", "auto"},
    {"kv-layout", "paged"},
    {"cpu-weights", "auto"},
    {"cpu-products", "auto"},
    {"contrastive-search", "false"},
    {"speculate", "0"},
    {"task", "auto|generate"},
};

bool IsGiven(const Values& values, std::string_view name) {
  return Find(values.program(), name) != nullptr && values.IsSet(name);
}

// Options that say nothing without --engine transformers. text-generation-inference takes the
// permission for every model, so only the launcher under its own name refuses that.
void CheckNoEngine(const Values& values, std::vector<std::string>& errors) {
  const bool penstock = Find(values.program(), "api-profile") != nullptr &&
                        values.GetString("api-profile") == "penstock";
  const bool permission =
      penstock && IsGiven(values, "trust-remote-code") && values.GetBool("trust-remote-code");
  for (std::string_view name : {"python", "trust-remote-code"}) {
    if (name == "python" ? !IsGiven(values, name) : !permission) continue;
    errors.push_back(absl::StrCat("--", std::string(name), " ", values.TextOf(name),
                                  ": must come with --engine transformers"));
  }
}

void CheckEngine(const Values& values, std::vector<std::string>& errors) {
  if (Find(values.program(), "engine") == nullptr) return;
  if (values.GetString("engine") != "transformers") return CheckNoEngine(values, errors);
  for (const EngineRule& rule : kEngineRules) {
    if (!IsGiven(values, rule.name)) continue;
    const std::vector<std::string_view> allowed = Pieces(rule.values);
    const std::string& text = values.TextOf(rule.name);
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) continue;
    errors.push_back(absl::StrCat("--", std::string(rule.name), " ", text, ": must be ",
                                  absl::StrReplaceAll(std::string(rule.values), {{"|", " or "}}),
                                  " with --engine transformers"));
  }
}

}  // namespace

std::vector<std::string> CheckTogether(const Values& values) {
  std::vector<std::string> errors;
  for (const Ordering& rule : kOrderings) CheckOrdering(values, rule, errors);
  CheckWholePrefill(values, errors);
  CheckOrigins(values, errors);
  CheckAdapters(values, errors);
  CheckFormerName(values, "cpu-products", "cpu-weights", errors);
  CheckEngine(values, errors);
  return errors;
}

}  // namespace penstock::options
