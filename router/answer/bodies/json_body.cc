#include "router/answer/bodies/json_body.h"

#include <cstdint>
#include <string>

#include "router/answer/bodies/json_text.h"
#include "router/answer/bodies/marker_search.h"

namespace penstock::router::answer {
namespace {

class JsonBody final : public Body {
 public:
  explicit JsonBody(std::span<const std::string_view> ends) : ends_(ends) {}

  std::size_t Take(std::string_view text, bool final, std::string& json) override {
    std::size_t i = 0;
    for (; i < text.size() && !done_; ++i) {
      if (!in_string_) {
        const Next next = NextMarker(text.substr(i), ends_, final);
        done_ = next == Next::kMarker;
        if (next != Next::kOther) break;
      }
      Read(text[i]);
    }
    json += text.substr(0, i);
    return i;
  }

 private:
  void Read(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (in_string_) {
      escaped_ = c == '\\';
      in_string_ = c != '"';
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      done_ = --depth_ <= 0;
    }
  }

  const std::span<const std::string_view> ends_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

class JsonStringBody final : public Body {
 public:
  std::size_t Take(std::string_view text, bool final, std::string& json) override {
    std::size_t taken = 0;
    if (!open_ && !text.empty()) {
      open_ = true;
      taken = 1;
    }
    while (!done_ && taken < text.size()) {
      const std::size_t size = TakeOne(text.substr(taken), final, json);
      if (size == 0) break;
      taken += size;
    }
    return taken;
  }

 private:
  // One run of plain characters, one escape, or the last quote.
  std::size_t TakeOne(std::string_view text, bool final, std::string& json) {
    if (text.front() == '"') {
      done_ = true;
      return 1;
    }
    if (text.front() == '\\') return TakeEscape(text, final, json);
    const std::size_t size = std::min(text.find_first_of("\"\\"), text.size());
    json += text.substr(0, size);
    return size;
  }

  static std::size_t TakeEscape(std::string_view text, bool final, std::string& json) {
    constexpr std::string_view kLetters = "btnfr\"\\/";
    constexpr std::string_view kValues = "\b\t\n\f\r\"\\/";
    if (text.size() < 2) return final ? Copy(text, 1, json) : 0;
    if (text[1] == 'u') return TakeUnicode(text, final, json);
    const std::size_t place = kLetters.find(text[1]);
    if (place == kLetters.npos) return Copy(text, 2, json);
    json += kValues[place];
    return 2;
  }

  static std::size_t TakeUnicode(std::string_view text, bool final, std::string& json) {
    constexpr std::size_t kOne = 6;
    constexpr std::size_t kPair = 12;
    if (text.size() < kOne) return final ? Copy(text, text.size(), json) : 0;
    std::uint32_t high = 0;
    if (!ReadHex(text.substr(2, 4), high)) return Copy(text, 2, json);
    std::uint32_t low = 0;
    if (high >= 0xD800 && high < 0xDC00) {
      if (text.size() < kPair && !final) return 0;
      const bool pair = text.size() >= kPair && text.substr(kOne, 2) == "\\u" &&
                        ReadHex(text.substr(kOne + 2, 4), low) && low >= 0xDC00 && low < 0xE000;
      if (pair) {
        AppendUtf8(json, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
        return kPair;
      }
    }
    AppendUtf8(json, high);
    return kOne;
  }

  static std::size_t Copy(std::string_view text, std::size_t size, std::string& json) {
    json += text.substr(0, size);
    return size;
  }

  bool open_ = false;
};

}  // namespace

std::unique_ptr<Body> MakeJsonBody(std::span<const std::string_view> ends) {
  return std::make_unique<JsonBody>(ends);
}

std::unique_ptr<Body> MakeJsonStringBody() { return std::make_unique<JsonStringBody>(); }

}  // namespace penstock::router::answer
