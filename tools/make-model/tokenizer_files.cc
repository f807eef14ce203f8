#include "tools/make-model/tokenizer_files.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/status.h"
#include "shard/weights/checkpoint_index.h"

namespace penstock::make_model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::uint64_t kMaxTokenizerBytes = 256 << 20;

absl::StatusOr<json::object> ReadJson(const fs::path& path) {
  auto text = shard::ReadSmallFile(path.string(), kMaxTokenizerBytes);
  if (!text.ok()) return WithContext(text.status(), path.string());
  json::error_code ec;
  json::value value = json::parse(*text, ec);
  if (ec || !value.is_object()) {
    return absl::InvalidArgumentError(path.string() + ": is not a JSON object");
  }
  return std::move(value.get_object());
}

using Vocabulary = std::map<std::string, std::int64_t>;

void AddToken(const json::value& content, const json::value& id, Vocabulary& vocabulary) {
  if (content.is_string() && id.is_int64()) {
    vocabulary[content.get_string().c_str()] = id.get_int64();
  }
}

// BPE and WordPiece keep an object of ids, Unigram a list of pairs.
Vocabulary ReadVocabulary(const json::object& tokenizer) {
  Vocabulary vocabulary;
  const json::value* model = tokenizer.if_contains("model");
  const json::value* vocab =
      model != nullptr && model->is_object() ? model->get_object().if_contains("vocab") : nullptr;
  if (vocab != nullptr && vocab->is_object()) {
    for (const auto& item : vocab->get_object()) {
      AddToken(json::string(item.key()), item.value(), vocabulary);
    }
  } else if (vocab != nullptr && vocab->is_array()) {
    std::int64_t id = 0;
    for (const json::value& pair : vocab->get_array()) {
      if (pair.is_array() && !pair.get_array().empty()) {
        AddToken(pair.get_array()[0], json::value(id), vocabulary);
      }
      ++id;
    }
  }
  const json::value* added = tokenizer.if_contains("added_tokens");
  if (added != nullptr && added->is_array()) {
    for (const json::value& token : added->get_array()) {
      const json::object* object = token.if_object();
      const json::value* content = object == nullptr ? nullptr : object->if_contains("content");
      const json::value* id = object == nullptr ? nullptr : object->if_contains("id");
      if (content != nullptr && id != nullptr) AddToken(*content, *id, vocabulary);
    }
  }
  return vocabulary;
}

// The id of a special token that tokenizer_config.json names as a string or {"content": …}; -1.
std::int32_t SpecialId(const json::object& config, const char* key, const Vocabulary& vocabulary) {
  const json::value* token = config.if_contains(key);
  if (token != nullptr && token->is_object()) token = token->get_object().if_contains("content");
  if (token == nullptr || !token->is_string()) return -1;
  const auto found = vocabulary.find(token->get_string().c_str());
  return found == vocabulary.end() ? -1 : static_cast<std::int32_t>(found->second);
}

std::string Utf8(std::uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2's alphabet of bytes: printable Latin-1 is written as itself, the rest from U+0100 on.
std::vector<std::string> ByteSpellings() {
  std::vector<std::string> spellings;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    spellings.push_back(Utf8(printable ? byte : next++));
  }
  return spellings;
}

json::value SpecialToken(std::int64_t id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

json::value ByteTokenizerJson(std::uint32_t size) {
  json::object vocab{{"<pad>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (const std::string& spelling : ByteSpellings()) vocab[spelling] = vocab.size();
  const std::string space = ByteSpellings()[' '];
  while (vocab.size() < size) vocab[space + "t" + std::to_string(vocab.size())] = vocab.size();
  const json::value byte_level = {{"type", "ByteLevel"},
                                  {"add_prefix_space", false},
                                  {"trim_offsets", true},
                                  {"use_regex", true}};
  json::object model{{"type", "BPE"},          {"dropout", nullptr},
                     {"unk_token", nullptr},   {"continuing_subword_prefix", nullptr},
                     {"fuse_unk", false},      {"end_of_word_suffix", nullptr},
                     {"merges", json::array()}};
  model["vocab"] = std::move(vocab);
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {SpecialToken(0, "<pad>"), SpecialToken(1, "<s>"), SpecialToken(2, "</s>")}},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model", std::move(model)}};
}

constexpr char kChatTemplate[] =
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";

}  // namespace

absl::StatusOr<TokenizerInfo> ReadTokenizer(const std::string& folder) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto tokenizer, ReadJson(fs::path(folder) / "tokenizer.json"));
  const Vocabulary vocabulary = ReadVocabulary(tokenizer);
  TokenizerInfo info;
  for (const auto& [content, id] : vocabulary) {
    if (id < 0 || id >= (1 << 24)) {
      return BadValue("id of token " + content, std::to_string(id), "from 0 to 16777215");
    }
    info.size = std::max(info.size, static_cast<std::uint32_t>(id) + 1);
  }
  const auto config = ReadJson(fs::path(folder) / "tokenizer_config.json");
  if (!config.ok()) return info;  // gpt2-style folders have none: no special tokens
  info.bos = SpecialId(*config, "bos_token", vocabulary);
  const std::int32_t eos = SpecialId(*config, "eos_token", vocabulary);
  if (eos >= 0) info.eos.push_back(eos);
  return info;
}

absl::Status CopyTokenizer(const std::string& from, const std::string& to) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.model",
        "vocab.json", "merges.txt", "added_tokens.json", "chat_template.jinja"}) {
    std::error_code ec;
    if (!fs::exists(fs::path(from) / name, ec)) continue;
    fs::copy_file(fs::path(from) / name, fs::path(to) / name, fs::copy_options::overwrite_existing,
                  ec);
    if (ec) return absl::UnavailableError(to + "/" + name + ": " + ec.message());
    // A source without write permission must not make the copy read-only.
    fs::permissions(fs::path(to) / name, fs::perms::owner_write, fs::perm_options::add, ec);
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizerInfo> WriteByteTokenizer(const std::string& folder, std::uint32_t size) {
  PENSTOCK_RETURN_IF_ERROR(
      WriteTextFile(folder + "/tokenizer.json", json::serialize(ByteTokenizerJson(size))));
  const json::value config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                              {"bos_token", "<s>"},
                              {"eos_token", "</s>"},
                              {"pad_token", "<pad>"},
                              {"add_bos_token", false},
                              {"clean_up_tokenization_spaces", false},
                              {"chat_template", kChatTemplate}};
  PENSTOCK_RETURN_IF_ERROR(
      WriteTextFile(folder + "/tokenizer_config.json", json::serialize(config)));
  return TokenizerInfo{size, 1, {2}};
}

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text << "\n";
  out.close();
  if (!out) return absl::UnavailableError(path + ": cannot be written");
  return absl::OkStatus();
}

}  // namespace penstock::make_model
