// A turn that is appended to a conversation does not change the ids of the turns before it, so that
// the prefix cache holds them. The exceptions are listed by template.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/support/temp_folder.h"
#include "tests/unit/text/shared_data.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace penstock::text {
namespace {

namespace json = boost::json;

enum class Change { kText, kTokens };

struct Exception {
  std::string_view path;
  Change change;
  std::string_view reason;
};

constexpr std::string_view kJoins =
    "ends a turn with blank lines, which are one token with those of the next turn";
constexpr std::string_view kMovesTools = "lists the tools before the last question, so they move";
// A template is here once for each kind of change.
constexpr Exception kExceptions[] = {
    {"chujiezheng/gemma-it.jinja", Change::kTokens, kJoins},
    {"chujiezheng/llama-2-chat.jinja", Change::kTokens, kJoins},
    {"chujiezheng/mistral-instruct.jinja", Change::kTokens, kJoins},
    {"llama.cpp/CohereForAI-c4ai-command-r-plus-tool_use.jinja", Change::kText,
     "repeats its instructions for tools behind the last turn"},
    {"llama.cpp/CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja", Change::kText,
     "opens the turn of the chatbot behind the last turn, whether it is asked to or not"},
    {"llama.cpp/NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", Change::kText,
     "has no line break behind a result that is the last turn"},
    {"llama.cpp/NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja", Change::kText,
     "has no line break behind a result that is the last turn"},
    {"llama.cpp/fireworks-ai-llama-3-firefunction-v2.jinja", Change::kText,
     "opens the turn of the assistant behind the last turn, whether it is asked to or not"},
    {"llama.cpp/fireworks-ai-llama-3-firefunction-v2.jinja", Change::kTokens,
     "opens that turn with line breaks, which are one token with those of the text"},
    {"llama.cpp/microsoft-Phi-3.5-mini-instruct.jinja", Change::kText,
     "writes the end of the text behind the last turn"},
    {"llama.cpp/mistralai-Mistral-Nemo-Instruct-2407.jinja", Change::kText, kMovesTools},
    {"mistral-common/v11.jinja", Change::kText, kMovesTools},
    {"mistral-common/v11_audio.jinja", Change::kText, kMovesTools},
    {"mistral-common/v11_image.jinja", Change::kText, kMovesTools},
    {"mistral-common/v11_image_think.jinja", Change::kText, kMovesTools},
    {"mistral-common/v11_think.jinja", Change::kText, kMovesTools},
    {"mistral-common/v2.jinja", Change::kText, kMovesTools},
    {"mistral-common/v2_spm.jinja", Change::kText, kMovesTools},
    {"mistral-common/v3.jinja", Change::kText, kMovesTools},
    {"mistral-common/v3_image.jinja", Change::kText, kMovesTools},
    {"mistral-common/v3_image_spm.jinja", Change::kText, kMovesTools},
    {"mistral-common/v3_spm.jinja", Change::kText, kMovesTools},
    {"mistral-common/v7.jinja", Change::kText, kMovesTools},
    {"mistral-common/v7_audio.jinja", Change::kText, kMovesTools},
    {"mistral-common/v7_image.jinja", Change::kText, kMovesTools},
    {"mistral-common/v7_image_spm.jinja", Change::kText, kMovesTools},
    {"mistral-common/v7_spm.jinja", Change::kText, kMovesTools},
    {"qwen3/qwen3_nonthinking.jinja", Change::kText,
     "writes reasoning, or its empty markers, only behind the last question"},
};

constexpr std::string_view kSystem = R"({"role": "system", "content": "You are a librarian."})";
// Conversations; each is rendered after each of its turns.
constexpr std::string_view kConversations[] = {
    R"([{"role": "user", "content": "Where is book 1?"},
        {"role": "assistant", "content": "It is on shelf 1."},
        {"role": "user", "content": "And book 2, \"été\"?"},
        {"role": "assistant", "content": "It is\non shelf 2."},
        {"role": "user", "content": "Thank you"}])",
    R"([{"role": "user", "content": "Where is book 1?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "abcde1234", "type": "function",
         "function": {"name": "find", "arguments": {"book": 1}}}]},
        {"role": "tool", "name": "find", "tool_call_id": "abcde1234", "content": "{\"shelf\": 7}"},
        {"role": "assistant", "content": "It is on shelf 7."},
        {"role": "user", "content": "And book 2?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "abcde1235",
         "type": "function", "function": {"name": "find", "arguments": {"book": 2}}}]},
        {"role": "tool", "name": "find", "tool_call_id": "abcde1235", "content": "lent"},
        {"role": "assistant", "content": "It is lent."},
        {"role": "user", "content": "Thank you"}])",
    R"([{"role": "user", "content": "Where is book 1?"},
        {"role": "assistant", "content": "It is on shelf 1.", "reasoning_content": "Books, then."},
        {"role": "user", "content": "And book 2?"},
        {"role": "assistant", "content": "On shelf 2.", "reasoning_content": "Again books."},
        {"role": "user", "content": "Thank you"}])",
};
constexpr std::string_view kTools = R"([{"type": "function", "function": {"name": "find",
    "description": "Finds a book", "parameters": {"type": "object", "properties": {"book":
    {"type": "integer", "description": "Its number"}}, "required": ["book"]}}}])";

// Firefunction's template wants these.
constexpr std::string_view kVariables = R"({"functions": "[]", "datetime": "2025-07-10"})";

std::vector<std::string> TemplatePaths(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".jinja") {
      paths.push_back(std::filesystem::relative(entry.path(), folder).string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

// A tokenizer of the shared data whose special tokens are the markers of all templates, as they are
// in the tokenizers of their models.
std::shared_ptr<const Tokenizer> TokenizerWithMarkers(const std::string& path,
                                                      const std::set<std::string>& markers) {
  json::value tokenizer = ReadJson(path + "/tokenizer.json");
  auto& added = tokenizer.at("added_tokens").as_array();
  std::set<std::string> known;
  for (const auto& token : added) known.insert(Text(token.at("content")));
  std::int64_t id = 200'000;
  for (const std::string& marker : markers) {
    if (known.contains(marker)) continue;
    added.push_back({{"id", id++},
                     {"content", marker},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const TempFolder folder;
  folder.Write("tokenizer.json", json::serialize(tokenizer));
  return Tokenizer::Load(folder.path()).value();
}

std::set<std::string> MarkersOf(const std::vector<std::string>& sources) {
  static const std::regex marker(R"(<[^<>\s{}'"]+>|\[/?[A-Z_]{2,}\])");
  std::set<std::string> markers;
  for (const std::string& source : sources) {
    for (std::sregex_iterator i(source.begin(), source.end(), marker), end; i != end; ++i) {
      markers.insert(i->str());
    }
  }
  return markers;
}

// The texts of the conversation after each of its turns; none where the template refuses it.
std::vector<std::string> Renderings(const ChatTemplate& chat, const json::array& messages,
                                    std::string_view tools) {
  std::vector<std::string> texts;
  json::array turns;
  for (const json::value& message : messages) {
    turns.push_back(message);
    const std::string turns_json = json::serialize(turns);
    auto text = chat.Render({.messages_json = turns_json,
                             .tools_json = tools,
                             .kwargs_json = kVariables,
                             .add_generation_prompt = false,
                             .now_seconds = 1'752'148'800});
    if (text.ok()) texts.push_back(*std::move(text));
  }
  return texts;
}

// Some templates want the arguments of calls as text.
json::array WithTextArguments(json::array messages) {
  for (json::value& message : messages) {
    const json::value* calls = message.as_object().if_contains("tool_calls");
    if (calls == nullptr) continue;
    json::value& arguments = message.at("tool_calls").at(0).at("function").at("arguments");
    arguments = json::serialize(arguments);
  }
  return messages;
}

class StablePrompts : public ::testing::Test {
 protected:
  using Changes = std::set<std::pair<std::string, Change>>;

  // Compares each rendering with the next one.
  void Compare(const std::string& path, const std::vector<std::string>& texts) {
    for (std::size_t i = 0; i + 1 < texts.size(); ++i) {
      ++compared_[path];
      if (!texts[i + 1].starts_with(texts[i])) {
        Found(path, Change::kText, texts[i], texts[i + 1]);
        continue;
      }
      for (const auto& tokenizer : tokenizers_) {
        const auto before = tokenizer->Encode(texts[i], false).value();
        const auto after = tokenizer->Encode(texts[i + 1], false).value();
        const bool same = before.size() <= after.size() &&
                          std::equal(before.begin(), before.end(), after.begin());
        if (!same) Found(path, Change::kTokens, texts[i], texts[i + 1]);
      }
    }
  }

  void Found(const std::string& path, Change change, const std::string& before,
             const std::string& after) {
    if (found_.insert({path, change}).second) shown_[{path, change}] = before + "\n---\n" + after;
  }

  std::vector<std::shared_ptr<const Tokenizer>> tokenizers_;
  std::map<std::string, int> compared_;  // pairs of renderings
  Changes found_;
  std::map<std::pair<std::string, Change>, std::string> shown_;
};

TEST_F(StablePrompts, AnAppendedTurnKeepsTheIdsBeforeIt) {
  PENSTOCK_SHARED_OR_SKIP(folder, "chat_templates");
  PENSTOCK_SHARED_OR_SKIP(tokenizers, "tokenizers");
  const std::vector<std::string> paths = TemplatePaths(folder);
  ASSERT_EQ(paths.size(), 65u);
  std::vector<std::string> sources;
  for (const std::string& path : paths) sources.push_back(ReadFile(folder + "/" + path));
  for (const char* name : {"gpt2", "llama-2"}) {
    tokenizers_.push_back(TokenizerWithMarkers(tokenizers + "/" + name, MarkersOf(sources)));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto chat =
        ChatTemplate::Compile(sources[i], R"({"bos_token": "<s>", "eos_token": "</s>"})").value();
    for (const std::string_view conversation : kConversations) {
      json::array messages = json::parse(conversation).as_array();
      for (const bool system : {false, true}) {
        if (system) messages.insert(messages.begin(), json::parse(kSystem));
        for (const std::string_view tools : {std::string_view(), kTools}) {
          Compare(paths[i], Renderings(*chat, messages, tools));
          Compare(paths[i], Renderings(*chat, WithTextArguments(messages), tools));
        }
      }
    }
    EXPECT_GT(compared_[paths[i]], 0) << paths[i] << " refuses all conversations";
  }
  for (const auto& [path, change, reason] : kExceptions) {
    EXPECT_TRUE(found_.erase({std::string(path), change}) == 1)
        << path << " changes no earlier turn: take it from the list (" << reason << ")";
  }
  for (const auto& change : found_) {
    ADD_FAILURE() << change.first << " changes earlier "
                  << (change.second == Change::kText ? "text" : "tokens") << ":\n"
                  << shown_[change];
  }
}

}  // namespace
}  // namespace penstock::text
