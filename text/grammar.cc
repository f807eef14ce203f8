#include "text/grammar.h"

#include "common/status.h"
#include "text/rust_call.h"

namespace penstock::text {
namespace {

static_assert(sizeof(TokenId) == sizeof(uint32_t));

const uint32_t* RawIds(std::span<const TokenId> ids) {
  return reinterpret_cast<const uint32_t*>(ids.data());
}

int32_t KindNumber(GrammarSpec::Kind kind) {
  switch (kind) {
    case GrammarSpec::Kind::kJsonSchema:
      return PENSTOCK_GRAMMAR_JSON_SCHEMA;
    case GrammarSpec::Kind::kRegex:
      return PENSTOCK_GRAMMAR_REGEX;
    case GrammarSpec::Kind::kLark:
      return PENSTOCK_GRAMMAR_LARK;
    case GrammarSpec::Kind::kNone:
      break;
  }
  return 0;
}

}  // namespace

GrammarMatcher::~GrammarMatcher() { penstock_matcher_free(handle_); }

absl::Status GrammarMatcher::Mask(std::span<std::uint32_t> words) {
  RustBytes error;
  const int32_t code = penstock_matcher_mask(handle_, words.data(), words.size(), error.out());
  return ToStatus(code, error);
}

absl::Status GrammarMatcher::Accept(std::span<const TokenId> tokens) {
  RustBytes error;
  const int32_t code = penstock_matcher_accept(handle_, RawIds(tokens), tokens.size(), error.out());
  return ToStatus(code, error);
}

absl::StatusOr<std::vector<TokenId>> GrammarMatcher::Forced(std::span<const std::uint32_t> mask,
                                                            std::span<const TokenId> context,
                                                            std::size_t most) {
  RustTokens tokens;
  RustBytes error;
  const int32_t code = penstock_matcher_forced(handle_, mask.data(), mask.size(), RawIds(context),
                                               context.size(), most, tokens.out(), error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return tokens.ids();
}

absl::StatusOr<GrammarMatcher::State> GrammarMatcher::Where() {
  int32_t accepting = 0;
  int32_t complete = 0;
  RustBytes error;
  const int32_t code = penstock_matcher_state(handle_, &accepting, &complete, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return State{accepting != 0, complete != 0};
}

CompiledGrammar::~CompiledGrammar() { penstock_grammar_free(handle_); }

absl::StatusOr<std::unique_ptr<GrammarMatcher>> CompiledGrammar::Start() const {
  penstock_matcher* matcher = nullptr;
  RustBytes error;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(penstock_matcher_new(handle_, &matcher, error.out()), error));
  return std::unique_ptr<GrammarMatcher>(new GrammarMatcher(matcher));
}

absl::StatusOr<std::shared_ptr<const Vocabulary>> Vocabulary::Create(
    const Tokenizer& tokenizer, std::uint32_t rows, std::span<const TokenId> eos_ids,
    Tables tables) {
  penstock_vocabulary* handle = nullptr;
  RustBytes error;
  const int32_t code =
      penstock_vocabulary_new(tokenizer.handle(), rows, RawIds(eos_ids), eos_ids.size(),
                              tables == Tables::kPrepared ? 1 : 0, &handle, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return std::shared_ptr<const Vocabulary>(new Vocabulary(handle, rows));
}

Vocabulary::~Vocabulary() { penstock_vocabulary_free(handle_); }

absl::StatusOr<std::shared_ptr<const CompiledGrammar>> Vocabulary::Compile(
    const GrammarSpec& spec, const GrammarLimits& limits) const {
  const penstock_grammar_limits bounds{limits.source_bytes, limits.compile_fuel, limits.mask_fuel};
  penstock_grammar* handle = nullptr;
  RustBytes error;
  const int32_t code = penstock_grammar_compile(handle_, KindNumber(spec.kind), spec.source.data(),
                                                spec.source.size(), &bounds, &handle, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return std::shared_ptr<const CompiledGrammar>(new CompiledGrammar(handle));
}

}  // namespace penstock::text
