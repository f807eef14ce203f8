// GPT-J (EleutherAI) and CodeGen (arXiv:2203.13474): LayerNorm, heads whose first dimensions are
// rotated as pairs of neighbours, and attention beside the MLP. CodeGen has queries, values and
// keys in one matrix of four blocks.
#include <cstdint>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGptjSizes{.hidden = 4096,
                              .layers = 28,
                              .heads = 16,
                              .vocabulary = 50400,
                              .positions = 2048,
                              .intermediate_per_hidden = 4,
                              .hidden_key = "n_embd",
                              .layers_key = "n_layer",
                              .heads_key = "n_head",
                              .intermediate_key = "n_inner",
                              .positions_key = "n_positions"};

struct GptJ {
  bool blocks = false;  // as CodeGen
  Activation activation = Activation::kGeluTanh;
};

constexpr std::uint32_t kBlocks = 4;

void BuildGptJ(DecoderBuilder& b, const GptJ& model) {
  b.Prefix({"transformer.", ""}, "ln_f.weight");
  b.Ignore(".attn.causal_mask");
  b.Embedding("wte.weight", "lm_head.weight");
  b.SetInterleaved();
  b.Layers("h", [&](std::uint32_t) {
    b.LayerNorm("ln_1");
    if (model.blocks) {
      b.QkvByBlock("attn.qkv_proj", kBlocks);
    } else {
      b.Qkv("attn.q_proj", "attn.k_proj", "attn.v_proj");
    }
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("attn.out_proj");
    b.Mlp("mlp.fc_in", model.activation, "mlp.fc_out");
    b.AddToResidual();
  });
  b.LayerNorm("ln_f");
  b.Head();
}

absl::Status ReadGptjShared(const ConfigReader& config, GptJ model, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGptjSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRotaryDim(config, 64, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "activation_function", Activation::kGeluTanh));
  spec.build = [model](DecoderBuilder& b) { BuildGptJ(b, model); };
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGptJ(const ConfigReader& config, ModelSpec& spec) {
  return ReadGptjShared(config, {}, spec);
}

absl::Status ReadCodeGen(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadGptjShared(config, {.blocks = true}, spec));
  if (spec.heads % kBlocks == 0) return absl::OkStatus();
  return config.Bad("n_head", "a multiple of " + std::to_string(kBlocks));
}

}  // namespace penstock::shard
