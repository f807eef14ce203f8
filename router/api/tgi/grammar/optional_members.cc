#include "router/api/tgi/grammar/optional_members.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace penstock::router::tgi {
namespace {

using Members = std::span<const std::string>;

// For each byte after a member the engine does work that grows with the square of the optional
// parts that follow. Blocks need more text but an eighth of that work.
constexpr std::size_t kBlock = 8;

// The end of the character class that begins at `at`. Classes may be nested.
std::size_t EndOfClass(std::string_view text, std::size_t at) {
  for (int open = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') {
      ++at;
    } else if (c == '[') {
      ++open;
      if (text.substr(at + 1, 1) == "^") ++at;
      if (text.substr(at + 1, 1) == "]") ++at;
    } else if (c == ']' && --open == 0) {
      return at;
    }
  }
  return text.npos;
}

// Whether the expression means the same in any place: alternatives are in groups, groups are
// closed, and there are no names or flags. If in doubt: false.
bool StandsByItself(std::string_view text) {
  int open = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') ++at;
    if (c == '[') at = EndOfClass(text, at);
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

class Writer {
 public:
  Writer(const std::string& between, std::size_t most) : between_(between), most_(most) {}

  void Halved(Members members) {
    if (members.size() == 1) return Put(members[0]);
    if (members.empty() || IsFull()) return;
    const Members first = members.first(members.size() / 2);
    const Members second = members.subspan(first.size());
    Put("(");
    Halved(first);
    Put(")");
    Behind(second);
    Put("|");
    Halved(second);
  }

  // Any of them, each with a comma in front.
  void Behind(Members members) {
    for (; members.size() >= kBlock && !IsFull(); members = members.subspan(kBlock)) {
      Put("(");
      Put(between_);
      Put("(");
      Halved(members.first(kBlock));
      Put("))?");
    }
    OneByOne(members);
  }

  void OneByOne(Members members) {
    for (const std::string& member : members) {
      Put("(");
      Put(between_);
      Put(member);
      Put(")?");
    }
  }

  void AsTgi(Members members) {
    for (std::size_t i = 0; i < members.size() && !IsFull(); ++i) {
      if (i > 0) Put("|");
      for (const std::string& earlier : members.first(i)) {
        Put("(");
        Put(earlier);
        Put(between_);
        Put(")?");
      }
      Put(members[i]);
      OneByOne(members.subspan(i + 1));
    }
  }

  std::optional<std::string> Take() {
    if (IsFull()) return std::nullopt;
    return std::move(text_);
  }

 private:
  bool IsFull() const { return text_.size() > most_; }

  void Put(std::string_view part) {
    if (!IsFull()) text_ += part;
  }

  const std::string& between_;
  const std::size_t most_;
  std::string text_;
};

}  // namespace

std::optional<std::string> AnyInOrder(const std::vector<std::string>& members,
                                      const std::string& between, std::size_t most) {
  Writer writer(between, most);
  AllStand(members) ? writer.Halved(members) : writer.AsTgi(members);
  return writer.Take();
}

std::optional<std::string> AnyBehind(const std::vector<std::string>& members,
                                     const std::string& between, std::size_t most) {
  Writer writer(between, most);
  AllStand(members) ? writer.Behind(members) : writer.OneByOne(members);
  return writer.Take();
}

}  // namespace penstock::router::tgi
