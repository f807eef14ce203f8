#include "shard/tgi/request.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "common/status.h"
#include "generate/v3/generate.pb.h"
#include "shard/service/start_checks.h"

namespace penstock::shard {
namespace {

namespace v3 = generate::v3;

// The text of the request. Images are refused, because no vision model is supported.
absl::StatusOr<std::string_view> TextOf(const v3::Request& wire) {
  if (wire.input_chunks().chunks().empty()) return std::string_view(wire.inputs());
  const std::string* text = nullptr;
  for (const v3::InputChunk& chunk : wire.input_chunks().chunks()) {
    if (!chunk.has_text()) continue;
    if (text != nullptr) return BadValue("input_chunks", "several texts", "one text");
    text = &chunk.text();
  }
  if (text == nullptr) return BadValue("input_chunks", "no text", "one text");
  return std::string_view(*text);
}

absl::StatusOr<std::vector<TokenId>> PromptOf(const v3::Request& wire,
                                              const text::Tokenizer& tokenizer) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view text, TextOf(wire));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                            tokenizer.Encode(text, wire.add_special_tokens()));
  if (wire.truncate() > 0 && ids.size() > wire.truncate()) {
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(wire.truncate()));
  }
  if (ids.empty()) return BadValue("inputs", "no token", "at least one token long");
  return ids;
}

float OrNeutral(float value, float neutral) { return value == 0.0f ? neutral : value; }

// As in TGI, some processors switch sampling on, whatever do_sample says.
bool Samples(const v3::NextTokenChooserParameters& wire, const SamplingParams& params) {
  return wire.do_sample() || params.temperature != 1.0f || params.top_k != 0 ||
         params.top_p < 1.0f || params.typical_p < 1.0f;
}

SamplingParams SamplingOf(const v3::NextTokenChooserParameters& wire) {
  constexpr float kGreatest = std::numeric_limits<float>::max();
  SamplingParams params;
  params.temperature = std::min(OrNeutral(wire.temperature(), 1.0f), kGreatest);
  params.top_k = wire.top_k();
  params.top_p = OrNeutral(wire.top_p(), 1.0f);
  params.typical_p = OrNeutral(wire.typical_p(), 1.0f);
  params.repetition_penalty = std::min(OrNeutral(wire.repetition_penalty(), 1.0f), kGreatest);
  params.frequency_penalty = wire.frequency_penalty();
  params.seed = wire.seed();
  params.watermark = wire.watermark();
  params.do_sample = Samples(wire, params);
  return params;
}

absl::Status CheckOffered(const v3::NextTokenChooserParameters& wire, const RequestLimits& limits) {
  if (wire.grammar_type() != v3::GRAMMAR_TYPE_NONE && !wire.grammar().empty() && !limits.grammar) {
    return absl::UnimplementedError("`grammar` is not supported by this shard");
  }
  if (wire.watermark() && !limits.watermark) {
    return absl::UnimplementedError("`watermark` is not supported by this shard");
  }
  return absl::OkStatus();
}

GrammarSpec GrammarOf(const v3::NextTokenChooserParameters& wire) {
  using Kind = GrammarSpec::Kind;
  if (wire.grammar().empty() || wire.grammar_type() == v3::GRAMMAR_TYPE_NONE) return {};
  const bool json = wire.grammar_type() == v3::GRAMMAR_TYPE_JSON;
  return {json ? Kind::kJsonSchema : Kind::kRegex, wire.grammar()};
}

absl::Status CheckLength(const SequenceStart& start, const RequestLimits& limits) {
  const std::string longest = std::to_string(limits.max_sequence_length);
  if (start.max_new_tokens == 0) return BadValue("max_new_tokens", "0", "at least 1");
  const std::uint64_t total = std::uint64_t{start.prompt_length} + start.max_new_tokens;
  if (total <= limits.max_sequence_length) return absl::OkStatus();
  return BadValue("max_new_tokens", std::to_string(start.max_new_tokens),
                  "at most " + longest + " together with the " +
                      std::to_string(start.prompt_length) + " tokens of the prompt");
}

}  // namespace

absl::StatusOr<TgiRequest> ReadRequest(const v3::Request& wire, const text::Tokenizer& tokenizer,
                                       const RequestLimits& limits) {
  PENSTOCK_RETURN_IF_ERROR(CheckOffered(wire.parameters(), limits));
  TgiRequest request;
  request.id = wire.id();
  SequenceStart& start = request.start;
  PENSTOCK_ASSIGN_OR_RETURN(start.prompt, PromptOf(wire, tokenizer));
  PENSTOCK_RETURN_IF_ERROR(CheckTokens(start.prompt, limits.vocabulary, "inputs"));
  start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
  start.sampling = SamplingOf(wire.parameters());
  PENSTOCK_RETURN_IF_ERROR(CheckSampling(start.sampling, limits.vocabulary, 0));
  start.grammar = GrammarOf(wire.parameters());
  start.logprobs.kind = LogprobRequest::Kind::kProcessed;
  start.logprobs.top_n = std::min(wire.top_n_tokens(), limits.vocabulary);
  start.logprobs.prompt_logprobs = wire.prefill_logprobs();
  start.ignore_eos = wire.stopping_parameters().ignore_eos_token();
  start.max_new_tokens = wire.stopping_parameters().max_new_tokens();
  PENSTOCK_RETURN_IF_ERROR(CheckLength(start, limits));
  const auto& stops = wire.stopping_parameters().stop_sequences();
  request.stops.assign(stops.begin(), stops.end());
  request.first_chunk = start.prompt_length;
  if (wire.has_chunk_len()) {
    const std::uint64_t chunk = std::uint64_t{wire.cache_len()} + wire.chunk_len();
    request.first_chunk =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(chunk, 1, start.prompt_length));
  }
  request.health = wire.blocks_size() == 1 && wire.blocks(0) == 0;
  return request;
}

}  // namespace penstock::shard
