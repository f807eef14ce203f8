// The rules of a GBNF grammar as trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock::router::openai {

struct GbnfNode {
  enum class Kind : std::uint8_t { kLiteral, kClass, kAny, kRule, kSequence, kChoice, kRepeat };
  Kind kind = Kind::kSequence;
  std::string text;                                   // kLiteral: UTF-8
  std::vector<std::pair<char32_t, char32_t>> ranges;  // kClass
  bool negated = false;                               // kClass
  std::size_t rule = 0;                               // kRule: index
  std::vector<GbnfNode> parts;                        // of the last three kinds
  std::uint32_t least = 0;                            // kRepeat
  std::optional<std::uint32_t> most;                  // kRepeat; none: no bound
};

struct GbnfRule {
  std::string name;
  std::optional<GbnfNode> body;  // none: used and not defined
};

// Reads all rules of a source. Newlines end a rule only before the next one.
class GbnfParser {
 public:
  explicit GbnfParser(std::string_view source) : rest_(source) {}

  // False: error() says why.
  bool Parse();
  const std::string& error() const { return error_; }
  std::vector<GbnfRule>& rules() { return rules_; }
  // The index of a rule; adds one that is not defined yet.
  std::size_t IndexOf(std::string_view name);

 private:
  static constexpr int kMaxDepth = 64;
  static constexpr std::uint32_t kMaxRepeats = 2000;

  bool Fail(std::string message);
  void SkipBlanks();
  char Next() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool Take(char c);
  std::string_view TakeName();
  bool AtRule();
  bool ReadRule();
  bool ReadChoice(GbnfNode& out, int depth);
  bool ReadSequence(GbnfNode& out, int depth);
  bool ReadElement(GbnfNode& out, int depth);
  bool ReadPostfix(GbnfNode& out);
  bool ReadBounds(GbnfNode& repeat);
  bool ReadNumber(std::uint32_t& out);
  bool ReadLiteral(GbnfNode& out);
  bool ReadClass(GbnfNode& out);
  bool ReadChar(char32_t& out);
  bool ReadEscape(char32_t& out);
  bool ReadHex(std::size_t digits, char32_t& out);

  std::string_view rest_;
  std::string error_;
  std::vector<GbnfRule> rules_;
  std::unordered_map<std::string, std::size_t> indexes_;
};

}  // namespace penstock::router::openai
