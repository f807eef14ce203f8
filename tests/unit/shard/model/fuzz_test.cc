// Changed files of good model folders. Opening them must not crash, hang or take much memory, and
// an error is one line. PENSTOCK_LONG_TESTS: 100,000 folders of each kind. PENSTOCK_FUZZ_SEED:
// other changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <random>
#include <string_view>

#include "tests/unit/shard/model/model_folder.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kSlack = 64u << 20;

std::size_t Rounds() { return std::getenv("PENSTOCK_LONG_TESTS") != nullptr ? 100'000 : 3'000; }

std::uint64_t Seed() {
  const char* given = std::getenv("PENSTOCK_FUZZ_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : source_(seed) {}
  std::size_t Below(std::size_t limit) { return limit == 0 ? 0 : source_() % limit; }
  bool OneIn(std::size_t count) { return Below(count) == 0; }
  template <typename List>
  const auto& Of(const List& list) {
    return list[Below(std::size(list))];
  }

 private:
  std::mt19937_64 source_;
};

// ---- changes of JSON ----

constexpr const char* kValues[] = {"null",
                                   "true",
                                   "false",
                                   "0",
                                   "1",
                                   "-1",
                                   "2",
                                   "3",
                                   "7",
                                   "64",
                                   "255",
                                   "4096",
                                   "16384",
                                   "65536",
                                   "1048576",
                                   "16777216",
                                   "2147483647",
                                   "4294967295",
                                   "4294967296",
                                   "9223372036854775807",
                                   "18446744073709551615",
                                   "99999999999999999999",
                                   "-9223372036854775808",
                                   "0.5",
                                   "-0.0",
                                   "1e-320",
                                   "1e38",
                                   "1e308",
                                   "1e999",
                                   "\"\"",
                                   "\"text\"",
                                   "\"full_attention\"",
                                   "\"sliding_attention\"",
                                   "\"yarn\"",
                                   "\"linear\"",
                                   "\"longrope\"",
                                   "\"dynamic\"",
                                   "\"proportional\"",
                                   "\"gelu\"",
                                   "\"relu2\"",
                                   "\"fp8\"",
                                   "\"\\u0000\\n\\ud83d\\ude00\"",
                                   "[]",
                                   "[0]",
                                   "[1,2,3,4]",
                                   "[[[]]]",
                                   "[null]",
                                   "[\"full_attention\"]",
                                   "[1e300,-1]",
                                   "{}",
                                   "{\"a\":{\"b\":[]}}",
                                   "{\"rope_type\":\"yarn\"}",
                                   "{\"full_attention\":{\"rope_theta\":0}}"};

// Keys that some architecture reads.
constexpr const char* kKeys[] = {"hidden_size",
                                 "num_hidden_layers",
                                 "num_attention_heads",
                                 "num_key_value_heads",
                                 "head_dim",
                                 "intermediate_size",
                                 "vocab_size",
                                 "max_position_embeddings",
                                 "rope_theta",
                                 "rope_scaling",
                                 "rope_parameters",
                                 "layer_types",
                                 "sliding_window",
                                 "use_sliding_window",
                                 "num_experts",
                                 "num_local_experts",
                                 "n_routed_experts",
                                 "num_experts_per_tok",
                                 "moe_intermediate_size",
                                 "n_group",
                                 "topk_group",
                                 "scoring_func",
                                 "topk_method",
                                 "partial_rotary_factor",
                                 "text_config",
                                 "tie_word_embeddings",
                                 "quantization_config",
                                 "torch_dtype",
                                 "dtype",
                                 "architectures",
                                 "model_type",
                                 "eos_token_id",
                                 "bos_token_id",
                                 "original_max_position_embeddings",
                                 "mlp_only_layers",
                                 "decoder_sparse_step",
                                 "per_layer_config",
                                 "q_lora_rank",
                                 "kv_lora_rank"};

// The object or one of the objects in it.
json::object& AnyObject(json::object& root, Random& random) {
  std::vector<json::object*> inner;
  for (auto& member : root) {
    if (member.value().is_object()) inner.push_back(&member.value().as_object());
  }
  if (inner.empty() || random.OneIn(2)) return root;
  return AnyObject(*random.Of(inner), random);
}

void ChangeMember(json::object& root, Random& random) {
  json::object& object = AnyObject(root, random);
  json::error_code ec;
  const json::value value = json::parse(random.Of(kValues), ec);  // null for what is no JSON
  if (object.empty() || random.OneIn(8)) {
    object[random.Of(kKeys)] = value;
    return;
  }
  const auto at = object.begin() + static_cast<std::ptrdiff_t>(random.Below(object.size()));
  if (random.OneIn(8)) {
    object.erase(at);
  } else if (json::array* list = at->value().if_array(); list != nullptr && !list->empty()) {
    const std::size_t index = random.Below(list->size());
    if (random.OneIn(4)) {
      list->resize(index);
    } else {
      (*list)[index] = value;
    }
  } else if (at->value().is_int64() && random.OneIn(2)) {
    const auto number = static_cast<std::uint64_t>(at->value().get_int64());
    at->value() = static_cast<std::int64_t>(number + random.Below(5) - 2);  // may wrap
  } else {
    at->value() = value;
  }
}

// ---- changes of text ----

// Replaces, removes, repeats or inserts bytes.
void ChangeBytes(std::string& text, Random& random) {
  constexpr std::string_view kAlphabet = "{}[]\",:0129-+eE.ab \\/\n\x01\xff\xc3";
  const std::size_t at = random.Below(text.size());
  const std::size_t count = 1 + random.Below(random.OneIn(4) ? 200 : 8);
  switch (random.Below(4)) {
    case 0:
      if (at < text.size()) text[at] = random.Of(kAlphabet);
      break;
    case 1:
      text.erase(at, count);
      break;
    case 2:
      text.insert(at, text.substr(at, count));
      break;
    default:
      text.insert(at, 1, random.Of(kAlphabet));
  }
}

// Replaces a number.
void ChangeNumber(std::string& text, Random& random) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t at = text.find_first_of(kDigits, random.Below(text.size()));
  if (at == text.npos) return;
  const std::size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
  text.replace(at, end - at, random.Of(kValues));
}

// ---- the tests ----

struct Count {
  std::size_t refused = 0;
  std::size_t opened = 0;
};

// Opens the folder on one of one or two ranks.
void Open(const ModelFolder& folder, std::uint64_t file_bytes, Random& random, Count& count) {
  const auto world = static_cast<std::uint32_t>(1 + random.Below(2));
  const Refusal refusal = folder.Open(static_cast<std::uint32_t>(random.Below(world)), world);
  ++(refusal.error.empty() ? count.opened : count.refused);
  EXPECT_EQ(std::count_if(refusal.error.begin(), refusal.error.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
            0)
      << refusal.error;
  EXPECT_LT(refusal.error.size(), 3000u) << refusal.error;
  EXPECT_LE(refusal.peak_bytes, file_bytes + kSlack) << refusal.error;
  EXPECT_LT(refusal.seconds, 1.0) << refusal.error;
}

using Round = std::function<void(Random&, Count&)>;

// `make` returns a round for a folder. Calls the rounds of all served variants, Rounds() in total.
void ForRounds(const char* what, const std::function<Round(const ModelFolder&)>& make) {
  const std::uint64_t seed = Seed();
  const std::vector<std::string> variants = ServedVariants();
  ASSERT_FALSE(variants.empty());
  Count count;
  std::size_t done = 0;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const ModelFolder folder(variants[v]);
    const Round round = make(folder);
    for (; done < Rounds() * (v + 1) / variants.size(); ++done) {
      SCOPED_TRACE(variants[v] + ", round " + std::to_string(done) + " of seed " +
                   std::to_string(seed));
      Random random(seed * 1'000'003 + done);
      round(random, count);
      if (testing::Test::HasFailure()) return;
    }
  }
  std::cout << "fuzz: " << done << " " << what << ", seed " << seed << ": " << count.refused
            << " refused, " << count.opened << " opened" << std::endl;
}

TEST(Fuzz, Configs) {
  ForRounds("config.json files", [](const ModelFolder& folder) -> Round {
    const json::object good = json::parse(folder.Read("config.json")).as_object();
    const std::uint64_t bytes = folder.Bytes();
    return [&folder, good, bytes](Random& random, Count& count) {
      json::object config = good;
      for (std::size_t changes = 1 + random.Below(3); changes > 0; --changes) {
        ChangeMember(config, random);
      }
      std::string text = json::serialize(config);
      if (random.OneIn(5)) ChangeBytes(text, random);
      folder.Write("config.json", text);
      Open(folder, bytes + text.size(), random, count);
    };
  });
}

std::string FirstWeightFile(const ModelFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().filename());
  }
  return *std::min_element(names.begin(), names.end());
}

TEST(Fuzz, SafetensorsHeaders) {
  ForRounds("safetensors headers", [](const ModelFolder& folder) -> Round {
    const std::string file = FirstWeightFile(folder);
    const WeightFile good = folder.ReadWeights(file);
    const std::uint64_t bytes = folder.Bytes();
    return [&folder, file, good, bytes](Random& random, Count& count) {
      std::string header = good.header;
      for (std::size_t changes = 1 + random.Below(3); changes > 0 && !header.empty(); --changes) {
        random.OneIn(2) ? ChangeNumber(header, random) : ChangeBytes(header, random);
      }
      const bool other_length = random.OneIn(16);
      folder.Write(file,
                   LengthPrefix(other_length ? random.Below(1u << 20) : header.size()) + header);
      // The data has no bytes on disk; nothing reads them.
      std::uint64_t size = 8 + header.size() + good.data.size();
      if (random.OneIn(16)) size = random.Below(size);
      std::filesystem::resize_file(folder.path() + "/" + file, size);
      Open(folder, bytes + header.size(), random, count);
    };
  });
}

}  // namespace
}  // namespace penstock::shard
