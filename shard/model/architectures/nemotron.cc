// Nemotron (arXiv:2402.16819), also known as Minitron: LayerNorm with weights around 0, heads that
// are rotated in part, and an MLP without a gate that squares what it keeps.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kNemotronSizes{.hidden = 6144,
                                  .layers = 32,
                                  .heads = 48,
                                  .intermediate = 24576,
                                  .vocabulary = 256000,
                                  .positions = 4096};

void BuildNemotron(DecoderBuilder& b) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.SetNormOffset(1.0f);
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    b.Mlp("mlp.up_proj", b.spec().activation, "mlp.down_proj");
    b.AddToResidual();
  });
  b.LayerNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadNemotron(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kNemotronSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_part = 0.5}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(spec.activation,
                            ReadActivation(config, "hidden_act", Activation::kReluSquared));
  spec.build = BuildNemotron;
  return absl::OkStatus();
}

}  // namespace penstock::shard
