// Phi-3.5-MoE (arXiv:2404.14219): Mixtral with LayerNorm, biases, and experts that are chosen by a
// sparse mixer (arXiv:2310.00811).
#include <cstdint>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kPhiMoeSizes{.hidden = 4096,
                                .layers = 32,
                                .heads = 32,
                                .kv_heads = 8,
                                .intermediate = 6400,
                                .vocabulary = 32064,
                                .positions = 131072};

void BuildPhiMoe(DecoderBuilder& b, const Routing& routing) {
  b.Prefix({"model.", ""}, "norm.weight");
  // transformers 5 has other names in its own files.
  const bool moved = b.Has("layers.0.mlp.router.weight");
  const std::string block = moved ? "mlp." : "block_sparse_moe.";
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    b.Router(block + (moved ? "router" : "gate"), routing.experts);
    AddExperts(b, block + "experts", "w1", "w3", "w2", routing);
    b.AddToResidual();
  });
  b.LayerNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadPhiMoe(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kPhiMoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 1e6}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 0));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, window, 0, spec));
  spec.expert_intermediate = spec.intermediate;
  spec.intermediate = 0;
  PENSTOCK_ASSIGN_OR_RETURN(Routing routing, ReadRouting(config, 16, 2));
  if (routing.chosen != 2) return config.Bad("num_experts_per_tok", "2");
  routing.kind = Routing::Kind::kSparseMixer;
  PENSTOCK_ASSIGN_OR_RETURN(const double jitter,
                            config.NumberOr("router_jitter_noise", 0.01, 0.0, 1e3));
  routing.mixer_distance = static_cast<float>(2.0 * jitter);
  spec.experts = routing.experts;
  spec.build = [routing](DecoderBuilder& b) { BuildPhiMoe(b, routing); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
