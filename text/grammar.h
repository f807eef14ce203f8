// Grammars say what an output must match, and which tokens may come next so that it does. A grammar
// is a JSON schema, a regular expression or a Lark grammar. llguidance does the work. Errors are
// those of text/tokenizer.h: InvalidArgument (no grammar, or nothing can match it),
// ResourceExhausted (too large).
//
//   vocabulary = Vocabulary::Create(tokenizer, rows, eos_ids, Tables::kPrepared)   once per model
//   grammar = vocabulary->Compile({GrammarSpec::Kind::kRegex, "[ab]+"}, limits)    may be cached
//   matcher = grammar->Start()                                                     one per output
// matcher->Mask(words) … select a token … matcher->Accept(token) …
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "text/tokenizer.h"

struct penstock_vocabulary;
struct penstock_grammar;
struct penstock_matcher;

namespace penstock::text {

// Work is counted, not timed, so that every machine refuses the same grammars. 0 = the default.
struct GrammarLimits {
  std::size_t source_bytes = 0;    // 256 KiB
  std::uint64_t compile_fuel = 0;  // 500,000 expressions
  std::uint64_t mask_fuel = 0;     // 100,000 expressions for one mask, some 7 ms
};

// Words of 32 bits that a mask over `rows` tokens has.
constexpr std::size_t MaskWords(std::uint32_t rows) { return (std::size_t{rows} + 31) / 32; }

// The state of one output in its grammar. One thread at a time. Unusable after an error.
class GrammarMatcher {
 public:
  ~GrammarMatcher();
  GrammarMatcher(const GrammarMatcher&) = delete;
  GrammarMatcher& operator=(const GrammarMatcher&) = delete;

  // Bit t % 32 of words[t / 32]: token t may come next. EOS tokens are allowed exactly where the
  // output may end. If nothing else can follow, only they are allowed. Takes 2 to 30 us for usual
  // grammars and a vocabulary of 128,000; some milliseconds at most.
  absl::Status Mask(std::span<std::uint32_t> words);

  // Appends these tokens to the output. A token that the mask forbids is an error.
  absl::Status Accept(std::span<const TokenId> tokens);

  // Where the grammar allows only one text next: the tokens of this text, at most `most`. They are
  // the ones that the tokenizer gives for the output as a whole. `mask` is the mask of the present
  // state. `context` holds the last tokens of prompt and output; kForcedContext of them are enough.
  //
  // Tokens at the end of the text are left out if a longer token could cover them and what follows.
  // The result is empty if the tokenizer would merge the text with the end of the context, since a
  // token that was sent cannot be replaced. A call after some of the tokens were accepted returns
  // the remaining ones first.
  absl::StatusOr<std::vector<TokenId>> Forced(std::span<const std::uint32_t> mask,
                                              std::span<const TokenId> context, std::size_t most);
  static constexpr std::size_t kForcedContext = 16;

  struct State {
    bool accepting = false;  // the output may end here
    bool complete = false;   // nothing but its end may follow
  };
  absl::StatusOr<State> Where();

 private:
  friend class CompiledGrammar;
  explicit GrammarMatcher(penstock_matcher* handle) : handle_(handle) {}

  penstock_matcher* handle_;
};

// Immutable; any number of threads. Matchers of one grammar share what they learn of it.
class CompiledGrammar {
 public:
  ~CompiledGrammar();
  CompiledGrammar(const CompiledGrammar&) = delete;
  CompiledGrammar& operator=(const CompiledGrammar&) = delete;

  absl::StatusOr<std::unique_ptr<GrammarMatcher>> Start() const;

 private:
  friend class Vocabulary;
  explicit CompiledGrammar(penstock_grammar* handle) : handle_(handle) {}

  penstock_grammar* handle_;
};

// A tokenizer's vocabulary as a trie of bytes. Immutable; any number of threads.
class Vocabulary {
 public:
  enum class Tables : std::uint8_t {
    kPlain,     // enough to compile and check
    kPrepared,  // masks are cheaper; costs another 0.3 s for 128,000 tokens
  };

  // `rows`: number of logits of the model, which may exceed the tokens of the tokenizer. `eos_ids`:
  // at least one. Fails for tokenizers that are neither byte-level nor SentencePiece.
  static absl::StatusOr<std::shared_ptr<const Vocabulary>> Create(const Tokenizer& tokenizer,
                                                                  std::uint32_t rows,
                                                                  std::span<const TokenId> eos_ids,
                                                                  Tables tables);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // Usually takes about a millisecond. A few grammars take long without spending fuel, such as a
  // thousand optional properties. A caller that must not wait needs a time limit of its own.
  absl::StatusOr<std::shared_ptr<const CompiledGrammar>> Compile(const GrammarSpec& spec,
                                                                 const GrammarLimits& limits) const;

  std::uint32_t rows() const { return rows_; }

 private:
  Vocabulary(penstock_vocabulary* handle, std::uint32_t rows) : handle_(handle), rows_(rows) {}

  penstock_vocabulary* handle_;
  std::uint32_t rows_;
};

}  // namespace penstock::text
