// How the texts of an embedding model or of a classifier become vectors: which rows are pooled, the
// layers that follow, and the names of the classes. It is read from config.json and from the files
// of sentence-transformers (modules.json and the folders that it names).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shard/model/model_spec.h"

namespace penstock::shard {

std::string_view TaskName(Task task);  // "generate", "embed", "classify"
std::optional<Task> ParseTask(std::string_view name);
std::string_view PoolingName(PoolingKind kind);  // "cls", "mean", "last", "max"
std::optional<PoolingKind> ParsePooling(std::string_view name);

struct Pooling {
  PoolingKind kind = PoolingKind::kLast;
  std::vector<HeadLayer> layers;
  bool normalized = false;          // the result is a unit vector
  std::uint32_t outputs = 0;        // numbers of the result
  std::uint32_t max_tokens = 0;     // of a text, with special tokens
  std::vector<std::string> labels;  // of the classes
  bool sigmoid = false;             // classes do not exclude each other: sigmoids, no softmax
  bool plain_scores = false;        // a score of a pair is the number itself, without a sigmoid
};

// Whether the folder has the files of sentence-transformers.
bool HasSentenceModules(const std::string& folder);

// `wanted`: --pooling; nothing: what the files say, or else the usual for the task. `spec` has a
// task other than kGenerate. Errors are one line: file, key, value, limit.
absl::StatusOr<Pooling> ReadPooling(const std::string& folder, const std::string& config_json,
                                    std::optional<PoolingKind> wanted, const ModelSpec& spec);

}  // namespace penstock::shard
