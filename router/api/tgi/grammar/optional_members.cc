#include "router/api/tgi/grammar/optional_members.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace penstock::router::tgi {
namespace {

using Members = std::span<const std::string>;

// For each byte after a member the engine does work that grows with the square of the optional
// parts that follow. Blocks need more text but an eighth of that work.
constexpr std::size_t kBlock = 8;

// Whether the expression means the same in any place: alternatives are in groups, groups are
// closed, and there are no names or flags. If in doubt: false.
bool StandsByItself(std::string_view text) {
  int open = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') ++at;
    if (c == '[') {
      at += text.substr(at + 1, 1) == "^" ? 2 : 1;
      if (text.substr(at, 1) == "]") ++at;
      for (; at < text.size() && text[at] != ']'; ++at) {
        if (text[at] == '[') return false;
        if (text[at] == '\\') ++at;
      }
    }
    if (at >= text.size()) return false;
    if (c == '(' && text.substr(at + 1, 1) == "?" && text.substr(at + 2, 1) != ":") return false;
    if (c == '(') ++open;
    if (c == ')') --open;
    if (open < 0 || (c == '|' && open == 0)) return false;
  }
  return open == 0;
}

bool AllStand(Members members) {
  return std::all_of(members.begin(), members.end(), StandsByItself);
}

std::string OneByOne(Members members, const std::string& between) {
  std::string text;
  for (const std::string& member : members) text += Concat({"(", between, member, ")?"});
  return text;
}

std::string Halved(Members members, const std::string& between);

// Any of them, each with a comma before it.
std::string InBlocks(Members members, const std::string& between) {
  std::string text;
  for (; members.size() >= kBlock; members = members.subspan(kBlock)) {
    const std::string block = Halved(members.first(kBlock), between);
    text += Concat({"(", between, "(", block, "))?"});
  }
  return text + OneByOne(members, between);
}

std::string Halved(Members members, const std::string& between) {
  if (members.size() <= 1) return members.empty() ? "" : members[0];
  const Members first = members.first(members.size() / 2);
  const Members second = members.subspan(first.size());
  return Concat(
      {"(", Halved(first, between), ")", InBlocks(second, between), "|", Halved(second, between)});
}

std::string AsTgi(Members members, const std::string& between) {
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) text += '|';
    for (const std::string& earlier : members.first(i)) {
      text += Concat({"(", earlier, between, ")?"});
    }
    text += Concat({members[i], OneByOne(members.subspan(i + 1), between)});
  }
  return text;
}

std::optional<std::string> AtMost(std::size_t most, std::string text) {
  if (text.size() > most) return std::nullopt;
  return text;
}

}  // namespace

std::string Concat(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

std::optional<std::string> AnyInOrder(const std::vector<std::string>& members,
                                      const std::string& between, std::size_t most) {
  if (AllStand(members)) return AtMost(most, Halved(members, between));
  std::size_t bytes = 0;
  for (const std::string& member : members) bytes += member.size();
  if (bytes * members.size() > most) return std::nullopt;  // before it grows
  return AtMost(most, AsTgi(members, between));
}

std::optional<std::string> AnyAfter(const std::vector<std::string>& members,
                                    const std::string& between, std::size_t most) {
  return AtMost(most, AllStand(members) ? InBlocks(members, between) : OneByOne(members, between));
}

}  // namespace penstock::router::tgi
