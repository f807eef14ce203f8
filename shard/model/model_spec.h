// The properties that all model families share: sizes, RoPE, windows, types and special tokens.
// They are read from config.json, with the key names of transformers 4 or 5, and
// generation_config.json. Properties of one family are in its file in shard/model/architectures.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/dtype.h"
#include "common/ids.h"
#include "shard/model/activation.h"
#include "shard/weights/formats/stored_format.h"

namespace penstock::shard {

class ConfigReader;
class DecoderBuilder;

// What a model gives for a text.
enum class Task : std::uint8_t {
  kGenerate,  // the next token
  kEmbed,     // a vector
  kClassify,  // a number for each class
};

enum class HeadActivation : std::uint8_t { kNone, kTanh, kRelu, kGelu };

// A layer after the pooling of a text: norm(activation(weight * x + bias)).
struct HeadLayer {
  std::string folder = {};  // of the tensors, in the folder of the model; empty: that folder
  std::string name;         // of the matrix [outputs, inputs], without ".weight"
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  HeadActivation activation = HeadActivation::kNone;
  std::string norm = {};  // a layer norm, without ".weight"; empty: there is none
};

// How the rows of a text become one.
enum class PoolingKind : std::uint8_t { kCls, kMean, kLast, kMax };

enum class RopeType : std::uint8_t {
  kDefault,
  kLinear,        // frequencies / factor
  kDynamic,       // as kDefault; frequencies fall with the length of a longer text
  kLlama3,        // low frequencies / factor, with a ramp between the two wavelengths
  kYarn,          // arXiv:2309.00071
  kLongrope,      // arXiv:2402.13753; texts that are longer have other factors
  kProportional,  // only the first `turning` pairs of a whole head turn
};

struct RopeSpec {
  RopeType type = RopeType::kDefault;
  std::uint32_t dim = 0;  // leading dimensions of a head that are rotated; even
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double original_max_position = 0.0;  // kDynamic, kLongrope: the length of the longest usual text
  double attention_factor = 1.0;       // multiplies cos and sin
  bool truncate = true;                // yarn: the ends of the ramp are whole dimensions
  std::vector<double> factors;         // longrope: divides each frequency; else empty
  std::vector<double> long_factors;    // the same for longer texts
  std::uint32_t turning = 0;           // proportional: pairs (i, i + dim / 2) with a frequency

  // Whether the frequencies depend on the length of the text.
  bool DependsOnLength() const { return type == RopeType::kDynamic || type == RopeType::kLongrope; }
  bool operator==(const RopeSpec&) const = default;
};

// Heads of the gated delta nets of a model, of all ranks.
struct DeltaSpec {
  std::uint32_t key_heads = 0;
  std::uint32_t value_heads = 0;  // a multiple of key_heads; 0: the model has no such layers
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
  std::uint32_t kernel = 0;  // inputs of a channel of the convolution

  std::uint64_t KeyWidth() const { return std::uint64_t{key_heads} * key_dim; }
  std::uint64_t ValueWidth() const { return std::uint64_t{value_heads} * value_dim; }
};

struct ModelSpec {
  std::string model_type;
  std::uint32_t hidden = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;             // divides heads
  std::uint32_t head_dim = 0;             // even
  std::uint32_t full_kv_heads = 0;        // of layers without a window; 0 = as many
  std::uint32_t intermediate = 0;         // of an MLP; 0 = no layer has one
  std::uint32_t expert_intermediate = 0;  // of an expert; 0 = there are none
  std::uint32_t shared_intermediate = 0;  // of the shared expert; 0 = there is none
  std::uint32_t vocabulary = 0;
  std::uint32_t max_position = 0;  // positions that the model was trained for, with RoPE scaling
  float norm_eps = 1e-6f;
  Activation activation = Activation::kSilu;  // of the gate of an MLP, in the families that read it
  RopeSpec rope;
  std::vector<std::uint32_t> windows;  // per layer: a query sees this many positions; 0 = all
  std::optional<bool> tied_head;       // unless false: tied if the checkpoint has no head

  std::optional<DType> stored_dtype;  // `torch_dtype` | `dtype` of config.json
  std::uint32_t experts = 0;          // of a layer, where ranks may have whole ones; else 0
  StoredFormatPtr format;             // of quantised matrices (WeightPlan::format)
  std::vector<TokenId> eos_token_ids;
  TokenId bos_token_id = -1;  // -1 = none
  DeltaSpec delta;

  Task task = Task::kGenerate;
  bool both_ways = false;  // a token sees those after it too: the model has no next token
  // How texts are pooled and classified; by the family.
  PoolingKind class_pooling = PoolingKind::kLast;
  std::vector<HeadLayer> class_layers;

  // Declares the decoder of this model's family. Set by the family's ReadArchitecture.
  std::function<void(DecoderBuilder&)> build;
};

// Reads what a family needs of config.json into `spec`, and sets spec.build.
using ReadArchitecture = absl::Status(const ConfigReader& config, ModelSpec& spec);

// What the caller knows of the task beside config.json.
struct TaskChoice {
  std::optional<Task> wanted = {};  // nothing: what the model was made for
  bool makes_vectors = false;       // the folder has the files of sentence-transformers
};

// Reads and checks config.json. Errors are InvalidArgument, one line: file, key, value, limit.
absl::StatusOr<ModelSpec> ReadModelSpec(const std::string& config_json,
                                        const std::string& generation_config_json,
                                        const TaskChoice& choice = {});

}  // namespace penstock::shard
