#include "router/answer/bodies/tagged_body.h"

#include <algorithm>
#include <optional>
#include <string>

#include "router/answer/bodies/json_text.h"
#include "router/answer/bodies/literal_reader.h"
#include "router/answer/bodies/marker_search.h"
#include "router/answer/bodies/typed_value.h"
#include "router/answer/cursor.h"

namespace penstock::router::answer {
namespace {

class TaggedBody final : public Body {
 public:
  TaggedBody(const ArgumentTags& tags, const Tool& tool) : tags_(tags), tool_(tool) {}

  std::size_t Take(std::string_view text, bool final, std::string& json) override {
    std::size_t taken = 0;
    while (!done_ && taken < text.size()) {
      const State before = state_;
      const std::size_t size = TakeOne(text.substr(taken), final, json);
      taken += size;
      if (size == 0 && state_ == before) break;
    }
    return taken;
  }

 private:
  enum class State { kBetween, kHeldValue, kString, kLiteral, kAfterLiteral, kBroken };

  std::size_t TakeOne(std::string_view text, bool final, std::string& json) {
    switch (state_) {
      case State::kBetween:
        return TakeName(text, final, json);
      case State::kHeldValue:
        return TakeHeldValue(text, final, json);
      case State::kString:
        return TakeString(text, final, json);
      case State::kLiteral:
        return TakeLiteral(text, final, json);
      case State::kAfterLiteral:
        return TakeAfterLiteral(text, final);
      case State::kBroken:
        return TakeBroken(text, final, json);
    }
    return 0;
  }

  // Blanks, then a name with its tags, or the end.
  std::size_t TakeName(std::string_view text, bool final, std::string& json) {
    Cursor cursor(text, final);
    cursor.SkipBlanks();
    if (cursor.Take(tags_.end)) return End(cursor.position(), json);
    std::string_view name;
    types_ = 0;
    if (!TakeNameTags(cursor, name)) {
      if (cursor.undecided()) return 0;
      if (final && text.find_first_not_of(" \n\t\r") == text.npos) return text.size();
      state_ = State::kBroken;
      return 0;
    }
    if (cursor.undecided()) return 0;
    return BeginValue(text, cursor.position(), final, name, json);
  }

  bool TakeNameTags(Cursor& cursor, std::string_view& name) {
    if (!cursor.Take(tags_.before_name)) return false;
    if (!cursor.TakeUntil(tags_.after_name, kMaxNameBytes, name) || name.empty()) return false;
    if (tags_.names_type && !TakeTypeTag(cursor)) return false;
    if (!tags_.before_value.empty()) {
      cursor.SkipBlanks();
      return cursor.Take(tags_.before_value);
    }
    return true;
  }

  bool TakeTypeTag(Cursor& cursor) {
    if (cursor.Take(" string=\"true\">")) {
      types_ = kString;
    } else if (cursor.Take(" string=\"false\">")) {
      types_ = kAnyType & ~kString;
    } else {
      return cursor.Take(">");
    }
    return true;
  }

  // The way of the value depends on its first character, if only arrays and objects are possible.
  std::size_t BeginValue(std::string_view text, std::size_t begin, bool final,
                         std::string_view name, std::string& json) {
    if (types_ == 0) types_ = tool_.TypesOf(name);
    State next = State::kHeldValue;
    if (types_ == kString) next = State::kString;
    if ((types_ & kString) == 0 && (types_ & (kArray | kObject)) != 0) {
      const std::size_t first = text.find_first_not_of(" \n\t\r", begin);
      if (first == text.npos && !final) return 0;
      const char c = first == text.npos ? ' ' : text[first];
      if (c == '[' || c == '{') next = State::kLiteral;
    }
    json += empty_ ? "{\"" : ", \"";
    empty_ = false;
    AppendEscaped(json, name);
    json += "\": ";
    state_ = next;
    begun_ = false;
    searched_ = 0;
    if (next == State::kLiteral) literal_.emplace(LiteralReader::Begin::kValue);
    return begin;
  }

  std::size_t TakeHeldValue(std::string_view text, bool final, std::string& json) {
    const std::size_t end = text.find(tags_.after_value, searched_);
    if (end == text.npos) {
      searched_ = text.size() - std::min(text.size(), tags_.after_value.size() - 1);
      if (final) json += text;
      return final ? text.size() : 0;
    }
    std::string_view value = text.substr(0, end);
    if (tags_.lines && value.starts_with('\n')) value.remove_prefix(1);
    if (tags_.lines && value.ends_with('\n')) value.remove_suffix(1);
    json += TypedValue(value, types_);
    state_ = State::kBetween;
    return end + tags_.after_value.size();
  }

  std::size_t TakeString(std::string_view text, bool final, std::string& json) {
    if (!begun_) {
      begun_ = true;
      json += '"';
      if (tags_.lines && text.starts_with('\n')) return 1;
    }
    bool found = false;
    std::size_t size = BytesBefore(text, tags_.after_value, final, found);
    // A line feed at the end may belong to the tag.
    const bool line_ends = tags_.lines && size > 0 && text[size - 1] == '\n';
    if (line_ends && (found || !final)) --size;
    AppendEscaped(json, text.substr(0, size));
    if (!found) return size;
    json += '"';
    state_ = State::kBetween;
    return size + (line_ends ? 1 : 0) + tags_.after_value.size();
  }

  std::size_t TakeLiteral(std::string_view text, bool final, std::string& json) {
    std::size_t size = literal_->Take(text, final, json);
    if (literal_->done()) state_ = State::kAfterLiteral;
    if (literal_->broken()) state_ = State::kBroken;
    if (final && state_ == State::kLiteral) {
      json += text.substr(size);
      size = text.size();
    }
    return size;
  }

  std::size_t TakeAfterLiteral(std::string_view text, bool final) {
    Cursor cursor(text, final);
    cursor.SkipBlanks();
    const bool ended = cursor.Take(tags_.after_value);
    if (cursor.undecided()) return 0;
    state_ = ended ? State::kBetween : State::kBroken;
    return ended ? cursor.position() : 0;
  }

  std::size_t TakeBroken(std::string_view text, bool final, std::string& json) {
    bool found = false;
    const std::size_t size = BytesBefore(text, tags_.end, final, found);
    json += text.substr(0, size);
    done_ = found;
    return size + (found ? tags_.end.size() : 0);
  }

  std::size_t End(std::size_t size, std::string& json) {
    json += empty_ ? "{}" : "}";
    done_ = true;
    return size;
  }

  static constexpr std::size_t kMaxNameBytes = 256;

  const ArgumentTags& tags_;
  const Tool& tool_;
  State state_ = State::kBetween;
  bool empty_ = true;   // no argument yet
  bool begun_ = false;  // the string value
  ParameterTypes types_ = 0;
  std::optional<LiteralReader> literal_;
  std::size_t searched_ = 0;  // of the text, for the end of the value that is held
};

}  // namespace

std::unique_ptr<Body> MakeTaggedBody(const ArgumentTags& tags, const Tool& tool) {
  return std::make_unique<TaggedBody>(tags, tool);
}

}  // namespace penstock::router::answer
