// Measures two sequences of one model with alternate steps, so that both run under the same
// conditions. For programs that end at the first error.
#pragma once

#include <absl/status/statusor.h>

#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/dtype.h"
#include "shard/executor/model_executor.h"
#include "shard/model/model.h"
#include "shard/parallel/local_communicator.h"

namespace penstock::shard {

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << '\n';
  std::exit(1);
}

inline void Must(const absl::Status& status) {
  if (!status.ok()) Must(absl::StatusOr<int>(status));
}

// MODEL_FOLDER [dtype] [threads] [tokens] [a fifth, whose meaning is the program's]
struct DuelArguments {
  std::string folder;
  DType dtype = DType::kBFloat16;
  std::uint32_t threads = 2;
  std::uint32_t tokens = 64;
  std::uint32_t fifth = 4;
};

DuelArguments ReadDuelArguments(int argc, char** argv, std::string_view fifth,
                                std::uint32_t tokens);
boost::json::object DuelReport(const DuelArguments& arguments, const Model& model,
                               std::string_view fifth);

class Duel {
 public:
  static constexpr std::uint32_t kPrompt = 128;
  static constexpr std::uint32_t kBlock = 16;
  static constexpr std::uint32_t kRows = 16;  // of a step

  struct Step {
    double seconds = 0;
    std::vector<TokenId> tokens;
  };

  // `room`: positions of each sequence after the prompt. `candidates`: those of contrastive search.
  Duel(const Model& model, Backend& backend, std::uint32_t room, std::uint32_t candidates = 0);

  Step Begin(std::uint32_t side, const SamplingParams& sampling, std::uint32_t max_new_tokens);
  Step Decode(std::uint32_t side, std::uint32_t rows);

 private:
  Step Execute(const StepPlan& plan);

  LocalCommunicator local_;
  ModelExecutor executor_;
  std::uint32_t blocks_ = 0;  // of each
};

}  // namespace penstock::shard
