// Writes a checkpoint with random weights of a real model's shape: for benchmarks, whose speed does
// not depend on what a model knows, and for tests.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/dtype.h"

namespace penstock::make_model {

struct ModelOptions {
  std::string output;          // folder; made if absent, refused if it holds a model already
  std::string shape = "tiny";  // see ShapeNames
  std::string type = "llama";  // see KindNames
  DType dtype = DType::kBFloat16;
  std::uint64_t seed = 0;
  std::string tokenizer;             // folder to copy from; empty: a byte-level one of our own
  std::uint64_t max_file_bytes = 0;  // 0: one file; else several and an index
  std::uint32_t max_position = 0;    // 0: the shape's
  std::uint32_t sliding_window = 0;  // 0: none; not for llama, gpt_neox
  std::string gguf;                  // file to write the same weights to; empty: none
  bool overwrite = false;
};

struct Result {
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::uint32_t files = 0;
};

using Progress = std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)>;

// Streams to disk: memory use does not grow with the model. Errors are one line.
absl::StatusOr<Result> MakeModel(const ModelOptions& config, const Progress& progress);

}  // namespace penstock::make_model
