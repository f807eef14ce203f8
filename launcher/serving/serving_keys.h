// Every key of serving.properties that DJL-Serving and its LMI containers document, with its
// meaning in Penstock. The launcher applies this table, and docs/api/serving-properties.md is
// generated from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::launcher {

enum class KeyUse {
  kMapped,    // sets options
  kNoEffect,  // accepted: there is nothing to do, and `text` says why
  kRefused,   // any value but the neutral ones stops the start, and `text` says what to do instead
};

// The effect of a key.
struct KeyEffect {
  std::vector<std::pair<std::string, std::string>> options;  // name and value
  std::string note;                                          // one line for the log at the start
  std::string error;                                         // what the value must be; empty = fine
};

struct ServingKey {
  std::string_view name;  // without `option.`; alternatives after '|'
  bool option = true;     // `option.name` and OPTION_NAME, else `name` and SERVING_NAME
  KeyUse use = KeyUse::kMapped;
  // kMapped without `apply`: the option that takes the value as it is.
  std::string_view to = {};
  // kRefused: values that change nothing and are accepted, "false|1".
  std::string_view neutral = {};
  KeyEffect (*apply)(const std::string& value) = nullptr;
  std::string_view text = {};  // the meaning, or the reason
};

std::span<const ServingKey> ServingKeys();

// The row of a key as it is written (`option.dtype`, `engine`); null when there is none.
const ServingKey* FindServingKey(std::string_view key);

// The known key nearest to an unknown one; empty when none is near.
std::string NearestServingKey(std::string_view key);

// What a value of the key means.
KeyEffect ApplyServingKey(const ServingKey& key, const std::string& value);

// docs/api/serving-properties.md.
std::string ServingKeysPage();

}  // namespace penstock::launcher
