// Everything that differs between the decoders that Penstock runs. Read from config.json (key names
// of transformers 4 and 5), generation_config.json and, for biases and the head, from which tensors
// the checkpoint holds. A new family is a row in the table of model_spec.cc and, where it needs
// one, a new switch here that program_builder.cc honours.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/dtype.h"
#include "common/ids.h"
#include "shard/weights/checkpoint.h"

namespace penstock::shard {

enum class RopeType : std::uint8_t {
  kDefault,
  kLinear,   // frequencies / factor
  kDynamic,  // as kDefault up to max_position, which Penstock never exceeds
  kLlama3,   // low frequencies / factor, a ramp between the two wavelengths
  kYarn,     // arXiv:2309.00071
};

struct RopeSpec {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double original_max_position = 0.0;
  double attention_factor = 1.0;  // multiplies cos and sin
  bool truncate = true;           // yarn: the ramp's ends are whole dimensions
};

struct ModelSpec {
  std::string model_type;
  std::uint32_t hidden = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;  // divides heads
  std::uint32_t head_dim = 0;  // even
  std::uint32_t intermediate = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t max_position = 0;  // positions the model was made for, with its RoPE scaling
  float norm_eps = 1e-6f;
  RopeSpec rope;
  std::vector<std::uint32_t> windows;  // per layer: a query sees this many positions; 0 = all

  bool qk_norm = false;  // RMSNorm of each query and key head before RoPE
  bool qkv_bias = false;
  bool output_bias = false;
  bool gate_up_bias = false;
  bool down_bias = false;

  std::string prefix;            // of the decoder's tensor names: "model." or ""
  std::string embedding_tensor;  // full names
  std::string head_tensor;       // == embedding_tensor when tied

  std::optional<DType> stored_dtype;  // torch_dtype | dtype of config.json
  std::vector<TokenId> eos_token_ids;
  TokenId bos_token_id = -1;  // -1 = none

  bool tied_head() const { return head_tensor == embedding_tensor; }
};

// InvalidArgument or NotFound, one line: file, key, value, limit.
absl::StatusOr<ModelSpec> ReadModelSpec(const std::string& config_json,
                                        const std::string& generation_config_json,
                                        const Checkpoint& checkpoint);

}  // namespace penstock::shard
