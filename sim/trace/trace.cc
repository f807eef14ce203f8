#include "sim/trace/trace.h"

#include <algorithm>

namespace penstock::sim {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): a well mixed function of a counter.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// `count` tokens that depend on `key` alone. One Mix per two tokens: prompts are long.
void AppendTokens(std::uint64_t key, std::uint32_t count, std::vector<TokenId>& tokens) {
  const std::uint64_t base = Mix(key);
  for (std::uint32_t i = 0; i < count; i += 2) {
    const std::uint64_t pair = Mix(base + i);
    tokens.push_back(static_cast<TokenId>(pair & 0x7fffffff));
    if (i + 1 < count) tokens.push_back(static_cast<TokenId>(pair >> 33));
  }
}

}  // namespace

std::vector<TokenId> MakePrompt(const Trace& trace, std::size_t index) {
  const TraceRequest& request = trace.requests[index];
  std::vector<TokenId> tokens;
  tokens.reserve(request.prompt_tokens);
  for (const std::uint32_t block : request.blocks) {
    const auto left = request.prompt_tokens - static_cast<std::uint32_t>(tokens.size());
    AppendTokens(block, std::min(left, trace.block_tokens), tokens);
  }
  const auto left = request.prompt_tokens - static_cast<std::uint32_t>(tokens.size());
  AppendTokens(~static_cast<std::uint64_t>(index), left, tokens);  // apart from all block ids
  return tokens;
}

}  // namespace penstock::sim
