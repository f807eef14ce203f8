#include "tests/fuzz/target.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace penstock::fuzz {
namespace {

constexpr std::array kTargets = {
    Target{"chat_template", ReadChatTemplate},
    Target{"config_json", ReadModelConfig},
    Target{"generate_v3", ReadGenerateV3},
    Target{"grammar", ReadGrammar},
    Target{"http", ReadHttp},
    Target{"input_log", ReadInputLog},
    Target{"json_anthropic", ReadAnthropic},
    Target{"json_djl", ReadDjl},
    Target{"json_effective", ReadEffective},
    Target{"json_native", ReadNative},
    Target{"json_ollama", ReadOllama},
    Target{"json_openai", ReadOpenai},
    Target{"json_responses", ReadResponses},
    Target{"json_sglang", ReadSglang},
    Target{"json_tgi", ReadTgi},
    Target{"json_vectors", ReadVectors},
    Target{"plans", ReadPlans},
    Target{"safetensors", ReadSafetensors},
    Target{"serving_properties", ReadServingProperties},
    Target{"step_result", ReadStepResult},
    Target{"tokenizer_json", ReadTokenizerJson},
    Target{"yaml", ReadYaml},
};

constexpr std::string_view kSeparator = "\n----\n";

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  const auto found = std::ranges::find(kTargets, name, &Target::name);
  return found == kTargets.end() ? nullptr : &*found;
}

void Require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "a check of the fuzz target failed: %.*s\n", static_cast<int>(what.size()),
               what.data());
  std::abort();
}

std::vector<std::string_view> Parts(std::string_view bytes) {
  std::vector<std::string_view> parts;
  for (std::size_t end = bytes.find(kSeparator); end != bytes.npos; end = bytes.find(kSeparator)) {
    parts.push_back(bytes.substr(0, end));
    bytes.remove_prefix(end + kSeparator.size());
  }
  parts.push_back(bytes);
  return parts;
}

std::string_view PartOf(const std::vector<std::string_view>& parts, std::size_t index) {
  return index < parts.size() ? parts[index] : std::string_view();
}

std::string_view TakeLine(std::string_view& bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
  return line;
}

std::vector<std::string_view> Records(std::string_view bytes) {
  std::vector<std::string_view> records;
  while (bytes.size() >= 2) {
    const auto low = static_cast<unsigned char>(bytes[0]);
    const auto high = static_cast<unsigned char>(bytes[1]);
    bytes.remove_prefix(2);
    records.push_back(bytes.substr(0, std::size_t{low} + std::size_t{high} * 256));
    bytes.remove_prefix(records.back().size());
  }
  return records;
}

}  // namespace penstock::fuzz
