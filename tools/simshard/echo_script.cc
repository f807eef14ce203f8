#include "tools/simshard/echo_script.h"

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>

namespace penstock::simshard {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kShownSeeds = 1'000'000;  // larger seeds are drawn ones

// A binary32 by its shortest decimal, as Python writes that number.
std::string FloatText(float value) {
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 64> text{};
  const double size = std::fabs(static_cast<double>(value));
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format).ptr;
  std::string out(text.data(), end);
  if (fixed && out.find('.') == out.npos) out += ".0";
  return out;
}

class Dump {
 public:
  void Add(std::string_view key, const std::string& value) {
    text_ += text_.size() > 1 ? ",\"" : "\"";
    text_.append(key).append("\":").append(value);
  }
  void AddFloat(std::string_view key, float value, float plain) {
    if (value != plain) Add(key, FloatText(value));
  }
  void AddShown(std::string_view key, const json::object& shown, const json::value& plain) {
    const json::value* value = shown.if_contains(key);
    if (value != nullptr && *value != plain) Add(key, json::serialize(*value));
  }
  std::string Text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

std::string DumpText(const SequenceStart& start, const json::object& shown) {
  const SamplingParams& s = start.sampling;
  Dump dump;
  dump.AddFloat("temperature", s.temperature, 1.0f);
  if (s.top_k != 0) dump.Add("top_k", std::to_string(s.top_k));
  dump.AddFloat("top_p", s.top_p, 1.0f);
  dump.AddFloat("typical_p", s.typical_p, 1.0f);
  dump.AddShown("do_sample", shown, nullptr);
  const json::value* seed = shown.if_contains("seed");
  const bool small = seed != nullptr && s.seed < kShownSeeds;
  dump.Add("seed", small ? std::to_string(s.seed) : "\"big\"");
  dump.AddFloat("repetition_penalty", s.repetition_penalty, 1.0f);
  dump.AddFloat("frequency_penalty", s.frequency_penalty, 0.0f);
  dump.AddShown("watermark", shown, false);
  dump.AddShown("grammar_type", shown, 0);
  dump.AddShown("grammar", shown, "");
  dump.AddShown("max_new_tokens", shown, nullptr);
  dump.AddShown("stop", shown, json::array());
  if (start.ignore_eos) dump.Add("ignore_eos", "true");
  dump.AddShown("truncate", shown, nullptr);
  if (start.logprobs.prompt_logprobs) dump.Add("prefill_logprobs", "true");
  if (start.logprobs.top_n != 0) dump.Add("top_n_tokens", std::to_string(start.logprobs.top_n));
  dump.AddShown("adapter_id", shown, nullptr);
  dump.AddShown("add_special_tokens", shown, nullptr);
  dump.Add("n_ids", std::to_string(start.prompt.size() - start.sample_index_base));
  return dump.Text();
}

// The number of the first [[NAME:number]]; 0 without one.
std::uint32_t Number(std::string_view text, std::string_view name) {
  const std::string begin = "[[" + std::string(name) + ":";
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1)) {
    std::uint32_t number = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + at + begin.size(), last, number);
    if (error == std::errc() && std::string_view(end, last).starts_with("]]")) return number;
  }
  return 0;
}

std::optional<std::string_view> Quoted(std::string_view text) {
  const std::size_t begin = text.find("<<<");
  if (begin == text.npos) return std::nullopt;
  const std::size_t end = text.find(">>>", begin + 3);
  if (end == text.npos) return std::nullopt;
  return text.substr(begin + 3, end - begin - 3);
}

}  // namespace

EchoScript ReadEchoScript(const SequenceStart& start, const text::Tokenizer& tokenizer) {
  EchoScript script;
  boost::system::error_code error;
  const json::value parsed = json::parse(start.trace_id, error);
  if (error || !parsed.is_object()) return script;
  const json::object& shown = parsed.get_object();
  const json::value* field = shown.if_contains("text");
  if (field == nullptr || !field->is_string()) return script;
  const std::string_view text(field->get_string().data(), field->get_string().size());
  const auto say = [&](std::string_view words) {
    auto ids = tokenizer.Encode(words, false);
    script.tokens = ids.ok() ? *std::move(ids) : std::vector<TokenId>();
  };
  if (text.find("[[dump]]") != text.npos) {
    say(DumpText(start, shown));
  } else if (const auto words = Quoted(text)) {
    say(*words);
  }
  script.endless = text.find("[[loop]]") != text.npos;
  script.fail_at = Number(text, "fail");
  script.slow_ms = Number(text, "slow");
  return script;
}

}  // namespace penstock::simshard
