#include "router/answer/format.h"

#include <algorithm>
#include <cstdint>

#include "common/fnv.h"
#include "router/answer/formats/formats.h"

namespace penstock::router::answer {
namespace {

// A format whose evidence another one shows too comes after it.
constexpr const Format* kFormats[] = {
    &gpt_oss::kGptOss,
    &kimi::kKimi,
    &deepseek::kDeepSeekV32,
    &deepseek::kDeepSeekV3,
    &deepseek::kDeepSeekV31,
    &minimax::kMiniMaxM2,
    &minimax::kMiniMaxM1,
    &qwen3_coder::kSeedOss,
    &qwen3_coder::kQwen3Coder,
    &glm::kGlm45,
    &gemma::kGemma4,
    &gemma::kFunctionGemma,
    &mistral::kMistralNamed,
    &mistral::kMistral,
    &json_list::kGranite,
    &json_list::kPhi4,
    &hermes::kHermes,
    &pythonic::kLlama4,
    &llama3::kLlama3,
    &glm::kGlm4,
    &pythonic::kGemma3,
    &think::kThink,
    &think::kNone,
};

bool Shows(std::string_view chat_template, Texts texts) {
  return std::ranges::all_of(
      texts, [&](std::string_view text) { return chat_template.find(text) != chat_template.npos; });
}

// `count` letters and digits that follow from `seed`.
std::string Letters(std::uint64_t seed, std::size_t count) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string out;
  while (out.size() < count) {
    // SplitMix64.
    std::uint64_t z = seed += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    out += kLetters[(z ^ z >> 31) % kLetters.size()];
  }
  return out;
}

}  // namespace

std::span<const Format* const> Formats() { return kFormats; }

const Format* FindFormat(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == std::end(kFormats) ? nullptr : *found;
}

const Format& NoFormat() { return think::kNone; }

const Format& DetectFormat(std::string_view chat_template) {
  for (const Format* format : kFormats) {
    for (const Texts texts : format->evidence) {
      if (Shows(chat_template, texts)) return *format;
    }
  }
  return think::kNone;
}

std::vector<std::string> MarkersOf(const Format& format) {
  std::vector<std::string> markers;
  for (const ReasoningMarkers& pair : format.reasoning) {
    markers.emplace_back(pair.open);
    markers.emplace_back(pair.close);
  }
  for (const Texts texts :
       {format.openers, format.line_openers, format.closers, format.dropped, format.special}) {
    for (const std::string_view text : texts) {
      if (!text.empty()) markers.emplace_back(text);
    }
  }
  return markers;
}

std::string MakeCallId(const Format& format, std::string_view answer, std::string_view tool,
                       std::size_t number) {
  if (format.call_ids == CallIds::kNumbered) {
    return "functions." + std::string(tool) + ":" + std::to_string(number);
  }
  const std::string source = std::string(answer) + "/" + std::to_string(number);
  const std::uint64_t seed = Fnv1a(source);
  constexpr std::size_t kNine = 9;
  constexpr std::size_t kLong = 24;
  if (format.call_ids == CallIds::kNine) return Letters(seed, kNine);
  return "call_" + Letters(seed, kLong);
}

}  // namespace penstock::router::answer
