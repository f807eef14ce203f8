#include "router/dispatch/after_reasoning.h"

#include <cstddef>
#include <optional>
#include <string>

#include "router/json/writer.h"

namespace penstock::router {
namespace {

std::string_view WithoutBlanks(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \n\t\r");
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

// The markers that the prompt has opened.
std::optional<std::size_t> Opened(const ReasoningRule& rule, std::string_view prompt) {
  for (std::size_t i = 0; i < rule.markers.size(); ++i) {
    if (prompt.ends_with(rule.markers[i].open)) return i;
  }
  return std::nullopt;
}

bool IsClosed(const ReasoningRule& rule, std::string_view prompt) {
  for (const auto& markers : rule.markers) {
    if (prompt.ends_with(markers.close)) return true;
  }
  return false;
}

std::string ListOf(const ReasoningRule& rule) {
  std::string list = "[";
  for (const auto& markers : rule.markers) {
    if (list.size() > 1) list += ',';
    list +=
        json::ObjectText("open", markers.open, "close", markers.close, "forced", markers.forced);
  }
  return list + "]";
}

}  // namespace

GrammarSpec AfterReasoning(GrammarSpec grammar, const ReasoningRule& rule,
                           std::string_view prompt_end) {
  if (!rule || (grammar.source.empty() && !rule.budget)) return grammar;
  const std::string_view prompt = WithoutBlanks(prompt_end);
  if (IsClosed(rule, prompt)) return grammar;
  const std::optional<std::size_t> opened = Opened(rule, prompt);
  if (!opened && !rule.may_open) return grammar;
  std::string source = "%reasoning {\"markers\":" + ListOf(rule);
  if (opened) source += ",\"opened\":" + std::to_string(*opened);
  if (rule.budget) source += ",\"budget\":" + std::to_string(*rule.budget);
  if (!grammar.source.empty()) {
    source += ",\"kind\":" + std::to_string(static_cast<int>(grammar.kind)) + ",\"source\":";
    json::AppendString(source, grammar.source);
  }
  return {GrammarSpec::Kind::kLark, source + "}"};
}

}  // namespace penstock::router
