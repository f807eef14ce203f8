// GPT-Neo (EleutherAI): GPT-2 with matrices as linear layers have them, windows in every second
// layer, and products of queries and keys that are not scaled.
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGptNeoSizes{.hidden = 2048,
                                .layers = 24,
                                .heads = 16,
                                .vocabulary = 50257,
                                .positions = 2048,
                                .intermediate_per_hidden = 4,
                                .layers_key = "num_layers",
                                .heads_key = "num_heads"};

void BuildGptNeo(DecoderBuilder& b, Activation activation) {
  b.Prefix({"transformer.", ""}, "ln_f.weight");
  b.Ignore(".attn.attention.bias");  // a mask
  b.Embedding("wte.weight", "lm_head.weight");
  b.LearnedPositions("wpe.weight", 0);
  b.Layers("h", [&](std::uint32_t layer) {
    b.LayerNorm("ln_1");
    b.Qkv("attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj");
    b.NoRope();
    b.Attention(b.spec().windows[layer], 1.0f);
    b.AttentionOutput("attn.attention.out_proj");
    b.AddToResidual();
    b.LayerNorm("ln_2");
    b.Mlp("mlp.c_fc", activation, "mlp.c_proj");
    b.AddToResidual();
  });
  b.LayerNorm("ln_f");
  b.Head();
}

// `attention_layers`: the kind of each layer. `attention_types` says the same in a shorter form.
absl::Status ReadGptNeoWindows(const ConfigReader& config, ModelSpec& spec) {
  constexpr char kKey[] = "attention_layers";
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> kinds, config.StringsOr(kKey));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window,
                            config.IntegerOr("window_size", 256, 1, 2147483647u));
  if (kinds.empty() && config.Has("attention_types")) {
    return config.Bad(kKey, "there, beside `attention_types`");
  }
  if (kinds.empty()) {
    for (std::uint32_t i = 0; i < spec.layers; ++i) {
      kinds.emplace_back(i % 2 == 0 ? "global" : "local");
    }
  }
  if (kinds.size() != spec.layers) {
    return config.Bad(kKey, "a list of " + std::to_string(spec.layers) + " names");
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] != "global" && kinds[i] != "local") {
      return config.BadItem(kKey, i, "global or local");
    }
    spec.windows.push_back(kinds[i] == "local" ? window : 0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGptNeo(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGptNeoSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadGptNeoWindows(config, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const Activation activation,
                            ReadActivation(config, "activation_function", Activation::kGeluTanh));
  spec.build = [activation](DecoderBuilder& b) { BuildGptNeo(b, activation); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
