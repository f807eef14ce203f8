// A Hugging Face tokenizer: text to token ids and back, named tokens and chat templates.
//
// Errors of this library (text/) are one line each. InvalidArgument is bad input or a broken file,
// NotFound a missing file, and ResourceExhausted a bound that was reached. FailedPrecondition means
// that a chat template refused the conversation or is wrong. Internal is a bug.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"

struct penstock_tokenizer;

namespace penstock::text {

struct Encoding {
  std::vector<TokenId> ids;
  // Begin and end of each token in the input, in bytes; {0, 0} for tokens that were added.
  std::vector<std::pair<std::size_t, std::size_t>> offsets;
};

struct PairEncoding {
  std::vector<TokenId> ids;
  std::size_t first_part = 0;  // ids from this one on are the second part, by their types
};

// Immutable; any number of threads may use one at once. Encoding takes time in proportion to the
// text (about 1 ms per 4 KB), so it belongs on a text thread.
class Tokenizer {
 public:
  // `folder` holds tokenizer.json and, optionally, tokenizer_config.json, special_tokens_map.json,
  // chat_template.jinja or chat_template.json.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& folder);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Special tokens spelled out in `text` become their ids. Text that is not UTF-8 is refused.
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool add_special_tokens) const;
  absl::StatusOr<Encoding> EncodeWithOffsets(std::string_view text, bool add_special_tokens) const;

  // A text, or a pair of texts as the tokenizer joins them for an encoder. With `most` above 0
  // tokens are cut from the end of the longer text until all fit; special tokens stay.
  absl::StatusOr<PairEncoding> EncodePair(std::string_view text,
                                          std::optional<std::string_view> pair,
                                          bool add_special_tokens, std::size_t most) const;

  // Ids outside the vocabulary decode to nothing. For text that grows token by token use
  // IncrementalDecoder.
  absl::StatusOr<std::string> Decode(std::span<const TokenId> ids, bool skip_special) const;

  // The vocabulary's spelling of a token ("Ġthe", "▁the", "<0x0A>"), not its text.
  std::optional<std::string> Token(TokenId id) const;
  bool IsSpecial(TokenId id) const { return FactsOf(id).special; }

  // Facts of a token that do not depend on its neighbours. They are computed at the first call and
  // kept, with at most about 60 bytes per token of the vocabulary.
  struct TokenFacts {
    bool special = false;
    // The token's text is `text` whatever its neighbours, unless a character is incomplete.
    bool settled = false;
    std::string text;
  };
  const TokenFacts& FactsOf(TokenId id) const;

  // Largest id + 1, added tokens included. A model may have more embedding rows.
  std::uint32_t vocabulary() const;

  // All named tokens as a JSON object, as chat templates see them.
  std::string NamedTokensJson() const;
  // Source of the model's chat template ("" = the default one).
  std::optional<std::string> ChatTemplateSource(std::string_view name) const;

  // Used by the other classes of text/.
  const penstock_tokenizer* handle() const { return handle_; }

 private:
  explicit Tokenizer(penstock_tokenizer* handle);

  penstock_tokenizer* handle_;
  mutable std::vector<std::atomic<const TokenFacts*>> facts_;  // by id; null: not computed yet
};

}  // namespace penstock::text
