// Writes grammars in llguidance's variant of Lark.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "router/answer/special_tokens.h"

namespace penstock::router::answer {

// A regular expression that matches `text` and nothing else, without a `/`.
void AppendRegexOf(std::string& out, std::string_view text);

// `special` must outlive it.
class LarkWriter {
 public:
  explicit LarkWriter(const SpecialTokens& special) : special_(special) {}

  // Adds a rule of this body and returns its name.
  std::string Rule(std::string_view body);
  void Rule(std::string_view name, std::string_view body);
  // The same of a terminal, which is one regular expression.
  std::string Terminal(std::string_view body);
  // A rule that ends where its regular expression matches first.
  std::string LazyRule(std::string_view body);

  // `text` as a part of a body. Special tokens that are spelled out in it are these tokens.
  std::string Literal(std::string_view text) const;
  // Any text, then `end`, which is not in the text.
  std::string TextUntil(std::string_view end);

  // The special token that `text` begins with; null if none.
  const SpecialToken* SpecialAt(std::string_view text) const;
  static std::string PartOf(const SpecialToken& token);

  const SpecialTokens& special() const { return special_; }
  std::string Take() { return std::move(rules_); }

 private:
  std::string Next(char prefix) { return prefix + std::to_string(count_++); }

  const SpecialTokens& special_;
  std::string rules_;
  std::size_t count_ = 0;
};

}  // namespace penstock::router::answer
