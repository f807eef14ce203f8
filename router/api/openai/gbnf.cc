#include "router/api/openai/gbnf.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>
#include <vector>

#include "router/api/openai/gbnf_parser.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

using Kind = GbnfNode::Kind;

constexpr std::size_t kMaxBytes = std::size_t{256} << 10;

// Calls `visit` with the index of each rule that the tree names.
template <class F>
void ForEachRule(const GbnfNode& node, const F& visit) {
  if (node.kind == Kind::kRule) visit(node.rule);
  for (const GbnfNode& part : node.parts) ForEachRule(part, visit);
}

// The Lark text of a grammar.
class LarkText {
 public:
  explicit LarkText(const std::vector<GbnfRule>& rules)
      : rules_(rules), regular_(rules.size()), nullable_(rules.size()) {
    FindRegularRules();
  }

  std::string Write(std::size_t root) {
    GbnfNode start;
    start.kind = Kind::kRule;
    start.rule = root;
    std::string out = "start: " + InRule(start) + "\n";
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const std::string name = std::to_string(i);
      out += regular_[i] ? "R" + name + ": " + Regular(*rules_[i].body)
                         : "r" + name + ": " + InRule(*rules_[i].body);
      out += '\n';
    }
    return out + terminals_;
  }

 private:
  // Rules that do not lead to themselves, in an order in which each follows those that it names.
  void FindRegularRules() {
    std::vector<std::vector<std::size_t>> users(rules_.size());
    std::vector<std::size_t> open(rules_.size());
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      ForEachRule(*rules_[i].body, [&](std::size_t used) {
        users[used].push_back(i);
        ++open[i];
      });
      if (open[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const std::size_t rule = ready.back();
      ready.pop_back();
      regular_[rule] = true;
      nullable_[rule] = IsNullable(*rules_[rule].body);
      for (const std::size_t user : users[rule]) {
        if (--open[user] == 0) ready.push_back(user);
      }
    }
  }

  bool IsRegular(const GbnfNode& node) const {
    if (node.kind == Kind::kRule) return regular_[node.rule];
    return std::ranges::all_of(node.parts, [this](const auto& part) { return IsRegular(part); });
  }

  // `node` must be regular.
  bool IsNullable(const GbnfNode& node) const {
    const auto nullable = [this](const GbnfNode& part) { return IsNullable(part); };
    if (node.kind == Kind::kLiteral) return node.text.empty();
    if (node.kind == Kind::kRule) return nullable_[node.rule];
    if (node.kind == Kind::kSequence) return std::ranges::all_of(node.parts, nullable);
    if (node.kind == Kind::kChoice) return std::ranges::any_of(node.parts, nullable);
    return node.kind == Kind::kRepeat && (node.least == 0 || nullable(node.parts[0]));
  }

  // A regular tree as the expression of a terminal.
  std::string Regular(const GbnfNode& node) {
    std::string out;
    switch (node.kind) {
      case Kind::kLiteral:
        json::AppendString(out, node.text);
        return out;
      case Kind::kClass:
        return Class(node);
      case Kind::kAny:
        return "/(?s:.)/";
      case Kind::kRule:
        return "R" + std::to_string(node.rule);
      default:
        return Joined(node, [this](const GbnfNode& part) { return Regular(part); });
    }
  }

  // A tree in a rule: its regular parts are terminals of their own.
  std::string InRule(const GbnfNode& node) {
    if (IsRegular(node)) return Terminal(node);
    if (node.kind == Kind::kRule) return "r" + std::to_string(node.rule);
    const auto in_rule = [this](const GbnfNode& part) { return InRule(part); };
    if (node.kind != Kind::kSequence) return Joined(node, in_rule);
    GbnfNode merged;
    for (const GbnfNode& part : node.parts) {
      // Adjacent regular parts are one terminal.
      const bool joins = !merged.parts.empty() && IsRegular(part) && IsRegular(merged.parts.back());
      if (joins) {
        merged.parts.back().parts.push_back(part);
        continue;
      }
      GbnfNode run;
      run.parts.push_back(part);
      merged.parts.push_back(IsRegular(part) ? std::move(run) : part);
    }
    return Joined(merged, in_rule);
  }

  // A terminal must not be empty, so one that may be empty is optional.
  std::string Terminal(const GbnfNode& node) {
    const std::string name = "T" + std::to_string(terminal_count_++);
    const bool nullable = IsNullable(node);
    terminals_ += name + ": " + (nullable ? "/(?s:.+)/ & " : "") + Regular(node) + "\n";
    return nullable ? name + "?" : name;
  }

  template <class F>
  static std::string Joined(const GbnfNode& node, const F& text_of) {
    std::string out = "(";
    const char* const between = node.kind == Kind::kChoice ? " | " : " ";
    for (const GbnfNode& part : node.parts) {
      if (out.size() > 1) out += between;
      out += text_of(part);
    }
    if (node.parts.empty()) out += "\"\"";
    out += ')';
    if (node.kind != Kind::kRepeat) return out;
    out += "{" + std::to_string(node.least) + ",";
    if (node.most) out += std::to_string(*node.most);
    return out + "}";
  }

  static std::string Class(const GbnfNode& node) {
    std::string out = node.negated ? "/[^" : "/[";
    const auto append = [&out](char32_t c) {
      char digits[8];
      const auto end = std::to_chars(digits, digits + 8, static_cast<std::uint32_t>(c), 16).ptr;
      out.append("\\x{").append(digits, end).append("}");
    };
    for (const auto& [first, last] : node.ranges) {
      append(first);
      if (last == first) continue;
      out += '-';
      append(last);
    }
    return out + "]/";
  }

  const std::vector<GbnfRule>& rules_;
  std::vector<bool> regular_;   // by rule
  std::vector<bool> nullable_;  // by regular rule
  std::string terminals_;
  std::size_t terminal_count_ = 0;
};

}  // namespace

std::variant<std::string, GbnfError> LarkOfGbnf(std::string_view source) {
  if (source.size() > kMaxBytes) {
    return GbnfError{"it must have at most " + std::to_string(kMaxBytes) +
                     " bytes. Given: " + std::to_string(source.size())};
  }
  GbnfParser parser(source);
  if (!parser.Parse()) return GbnfError{parser.error()};
  return LarkText(parser.rules()).Write(parser.IndexOf("root"));
}

}  // namespace penstock::router::openai
