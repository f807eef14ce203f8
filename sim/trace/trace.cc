#include "sim/trace/trace.h"

#include <algorithm>

#include "sim/random.h"

namespace penstock::sim {
namespace {

// Appends `count` tokens that depend on `key` alone. One Mix gives two tokens, for speed.
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
  AppendTokens(~static_cast<std::uint64_t>(index), left, tokens);  // no block id has this key
  return tokens;
}

}  // namespace penstock::sim
