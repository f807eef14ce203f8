// Youtu-LLM (Tencent): Llama with the latent attention of DeepSeek V3.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/latent_attention.h"
#include "shard/model/latent_config.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class. `head_dim` has no meaning.
constexpr SizeKeys kYoutuSizes{.hidden = 2048,
                               .layers = 32,
                               .heads = 16,
                               .head_dim = 2,
                               .intermediate = 6144,
                               .vocabulary = 128256,
                               .positions = 131072};
constexpr LatentHeads kYoutuHeads{
    .query_latent = 1536, .latent = 512, .nope = 128, .rope = 64, .value = 128};

void BuildYoutu(DecoderBuilder& b, const LatentHeads& heads) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    AddLatentAttention(b, "self_attn", heads);
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadYoutu(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kYoutuSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_ASSIGN_OR_RETURN(LatentHeads heads, ReadLatentHeads(config, kYoutuHeads, spec));
  PENSTOCK_ASSIGN_OR_RETURN(heads.interleaved, config.BoolOr("rope_interleave", true));
  spec.build = [heads](DecoderBuilder& b) { BuildYoutu(b, heads); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
