#include "text/tokenizer.h"

#include "common/status.h"
#include "text/rust_call.h"

namespace penstock::text {
namespace {

absl::Status Encode(const penstock_tokenizer* tokenizer, std::string_view text, bool add_special,
                    bool with_offsets, RustTokens& out) {
  RustBytes error;
  const int32_t code =
      penstock_tokenizer_encode(tokenizer, text.data(), text.size(), add_special ? 1 : 0,
                                with_offsets ? 1 : 0, out.out(), error.out());
  return ToStatus(code, error);
}

const Tokenizer::TokenFacts& Unknown() {
  static const Tokenizer::TokenFacts unknown;
  return unknown;
}

// Not part of FactsOf, which is called several times per token and rarely needs this.
[[gnu::noinline]] const Tokenizer::TokenFacts& FindFacts(
    const penstock_tokenizer* tokenizer, uint32_t id,
    std::atomic<const Tokenizer::TokenFacts*>& place) {
  auto found = std::make_unique<Tokenizer::TokenFacts>();
  RustBytes text;
  int32_t settled = 0;
  found->special = penstock_tokenizer_is_special(tokenizer, id) != 0;
  penstock_decoder_settled_text(tokenizer, id, text.out(), &settled, nullptr);
  found->settled = settled != 0;
  found->text = text.str();
  // If two threads compute it at once, the first result is kept.
  const Tokenizer::TokenFacts* known = nullptr;
  if (!place.compare_exchange_strong(known, found.get())) return *known;
  return *found.release();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Load(const std::string& folder) {
  penstock_tokenizer* handle = nullptr;
  RustBytes error;
  const int32_t code = penstock_tokenizer_load(folder.data(), folder.size(), &handle, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return std::shared_ptr<const Tokenizer>(new Tokenizer(handle));
}

Tokenizer::Tokenizer(penstock_tokenizer* handle)
    : handle_(handle), facts_(penstock_tokenizer_vocabulary(handle)) {}

Tokenizer::~Tokenizer() {
  for (const auto& facts : facts_) delete facts.load(std::memory_order_relaxed);
  penstock_tokenizer_free(handle_);
}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                                       bool add_special_tokens) const {
  RustTokens out;
  PENSTOCK_RETURN_IF_ERROR(text::Encode(handle_, text, add_special_tokens, false, out));
  return out.ids();
}

absl::StatusOr<Encoding> Tokenizer::EncodeWithOffsets(std::string_view text,
                                                      bool add_special_tokens) const {
  RustTokens out;
  PENSTOCK_RETURN_IF_ERROR(text::Encode(handle_, text, add_special_tokens, true, out));
  Encoding encoding{.ids = out.ids(), .offsets = {}};
  encoding.offsets.reserve(encoding.ids.size());
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
    encoding.offsets.emplace_back(out.raw().offsets[2 * i], out.raw().offsets[2 * i + 1]);
  }
  return encoding;
}

absl::StatusOr<PairEncoding> Tokenizer::EncodePair(std::string_view text,
                                                   std::optional<std::string_view> pair,
                                                   bool add_special_tokens,
                                                   std::size_t most) const {
  RustTokens out;
  RustBytes error;
  const std::string_view second = pair.value_or("");
  PairEncoding encoding;
  const int32_t code = penstock_tokenizer_encode_pair(
      handle_, text.data(), text.size(), pair ? second.data() : nullptr, second.size(),
      add_special_tokens ? 1 : 0, most, out.out(), &encoding.first_part, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  encoding.ids = out.ids();
  return encoding;
}

absl::StatusOr<std::string> Tokenizer::Decode(std::span<const TokenId> ids,
                                              bool skip_special) const {
  static_assert(sizeof(TokenId) == sizeof(uint32_t));
  RustBytes text, error;
  const int32_t code =
      penstock_tokenizer_decode(handle_, reinterpret_cast<const uint32_t*>(ids.data()), ids.size(),
                                skip_special ? 1 : 0, text.out(), error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return text.str();
}

std::optional<std::string> Tokenizer::Token(TokenId id) const {
  RustBytes token;
  int32_t special = 0;
  const int32_t code =
      penstock_tokenizer_token(handle_, static_cast<uint32_t>(id), token.out(), &special, nullptr);
  if (code != PENSTOCK_TEXT_OK) return std::nullopt;
  return token.str();
}

const Tokenizer::TokenFacts& Tokenizer::FactsOf(TokenId id) const {
  const auto index = static_cast<uint32_t>(id);
  if (index >= facts_.size()) return Unknown();
  const TokenFacts* const known = facts_[index].load(std::memory_order_acquire);
  return known != nullptr ? *known : FindFacts(handle_, index, facts_[index]);
}

std::uint32_t Tokenizer::vocabulary() const { return penstock_tokenizer_vocabulary(handle_); }

std::string Tokenizer::NamedTokensJson() const {
  RustBytes json;
  if (penstock_tokenizer_named_tokens_json(handle_, json.out(), nullptr) != PENSTOCK_TEXT_OK) {
    return "{}";
  }
  return json.str();
}

std::optional<std::string> Tokenizer::ChatTemplateSource(std::string_view name) const {
  RustBytes source;
  if (penstock_tokenizer_chat_template(handle_, name.data(), name.size(), source.out(), nullptr) !=
      PENSTOCK_TEXT_OK) {
    return std::nullopt;
  }
  return source.str();
}

}  // namespace penstock::text
