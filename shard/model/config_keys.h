// Keys of config.json that several families have, for the files of shard/model/architectures.
// Errors are InvalidArgument and name file, key, value and limit.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "shard/model/model_spec.h"
#include "shard/model/program.h"
#include "shard/model/rope_config.h"
#include "shard/weights/config_reader.h"

namespace penstock::shard {

// The names of the sizes in a family, and the defaults of its transformers class for keys that
// config.json does not have. 0: the class has none, so the key must be there.
struct SizeKeys {
  std::uint32_t hidden = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;  // 0 = as many as heads
  std::uint32_t head_dim = 0;  // 0 = hidden / heads
  std::uint32_t intermediate = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t positions = 0;
  std::uint32_t intermediate_per_hidden = 0;  // without the key and `intermediate`, times hidden
  const char* hidden_key = "hidden_size";
  const char* layers_key = "num_hidden_layers";
  const char* heads_key = "num_attention_heads";
  const char* intermediate_key = "intermediate_size";
  const char* positions_key = "max_position_embeddings";
};

// `hidden_size`, `num_hidden_layers`, `num_attention_heads`, `num_key_value_heads`, `head_dim`,
// `intermediate_size`, `vocab_size` and `max_position_embeddings`.
absl::Status ReadSizes(const ConfigReader& config, const SizeKeys& keys, ModelSpec& spec);

// Reads the epsilon of the norms; `absent` if there is no such key.
absl::Status ReadNormEps(const ConfigReader& config, std::string_view key, double absent,
                         ModelSpec& spec);

// `hidden_act`, the activation of the gate of MLPs. SiLU if there is no such key.
absl::Status ReadGate(const ConfigReader& config, ModelSpec& spec);

// `hidden_act` must be SiLU.
absl::Status RequireSilu(const ConfigReader& config);

// A number that multiplies or divides; 1 if there is no such key.
absl::StatusOr<float> ReadMultiplier(const ConfigReader& config, std::string_view key);

// `clip_qkv`: the bound of queries, keys and values. Nothing if it is absent.
absl::StatusOr<std::optional<float>> ReadClip(const ConfigReader& config);

// `rotary_dim` or `absent`: how many dimensions of a head GPT-J and its kin rotate, with a theta of
// 10000.
absl::Status ReadRotaryDim(const ConfigReader& config, std::uint32_t absent, ModelSpec& spec);

// `num_key_value_heads` under another key, after ReadSizes.
absl::Status ReadKvHeads(const ConfigReader& config, const char* key, ModelSpec& spec);

// The activation that `key` names with a name of transformers; `absent` if there is no such key.
absl::StatusOr<Activation> ReadActivation(const ConfigReader& config, std::string_view key,
                                          Activation absent);

// How experts are chosen, in the words of DeepSeek: `scoring_func` must be `scores` and
// `topk_method` one of `methods`. Both may be absent.
absl::Status RequireRouter(const ConfigReader& config, std::string_view scores,
                           std::initializer_list<std::string_view> methods);

// Sizes of a mixture of experts: the number of experts and that of the chosen ones
// (`num_experts_per_tok`) under any of their names. The rest is as in Routing.
absl::StatusOr<Routing> ReadRouting(const ConfigReader& config, std::uint32_t experts,
                                    std::uint32_t chosen);

// The same for experts that are chosen by sigmoids in groups, as in DeepSeek V3: `n_group`,
// `topk_group`, `norm_topk_prob` and `routed_scaling_factor`.
absl::StatusOr<Routing> ReadSigmoidRouting(const ConfigReader& config, std::uint32_t experts,
                                           std::uint32_t chosen);

// `num_nextn_predict_layers`: how many layers after the last one predict further tokens.
absl::StatusOr<std::uint32_t> ReadPredictionLayers(const ConfigReader& config,
                                                   std::uint32_t absent);

// By layer, whether it has experts: every `decoder_sparse_step`th has, unless `mlp_only_layers`
// names it.
absl::StatusOr<std::vector<bool>> ReadSparseLayers(const ConfigReader& config,
                                                   std::uint32_t layers);

// The same from `mlp_layer_types`, a list of dense and sparse. Without it the first
// `first_k_dense_replace` layers are dense, or `dense` without that.
absl::StatusOr<std::vector<bool>> ReadMlpLayerTypes(const ConfigReader& config,
                                                    std::uint32_t layers, std::uint32_t dense);

// Windows of all layers from `layer_types` or, without it, of the layers from `first_layer` on.
absl::Status ReadWindows(const ConfigReader& config, std::uint32_t window,
                         std::uint32_t first_layer, ModelSpec& spec);

// Windows from `sliding_window`, 4096 without it: each `pattern`th layer is full, the others have
// the window, unless `layer_types` says otherwise.
absl::Status ReadAlternatingWindows(const ConfigReader& config, std::uint32_t pattern,
                                    ModelSpec& spec);

// `sliding_window`: null means no window, which is 0; `absent` if there is no such key.
absl::StatusOr<std::uint32_t> ReadSlidingWindow(const ConfigReader& config, std::uint32_t absent);

}  // namespace penstock::shard
