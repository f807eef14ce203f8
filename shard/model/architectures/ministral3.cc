// Ministral 3 (Mistral AI): Llama whose queries grow with the position.
#include <cstdint>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kMinistral3Sizes{.hidden = 4096,
                                    .layers = 34,
                                    .heads = 32,
                                    .kv_heads = 8,
                                    .head_dim = 128,
                                    .intermediate = 14336,
                                    .vocabulary = 131072,
                                    .positions = 262144};

void BuildMinistral3(DecoderBuilder& b, const QueryGrowth& growth) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.GrowQueries(growth);
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// A config.json without RoPE parameters means the yarn of the transformers class.
absl::Status ReadMinistral3Rope(const ConfigReader& config, ModelSpec& spec, QueryGrowth& growth) {
  constexpr double kTheta = 1e6;
  constexpr std::uint32_t kOriginal = 16384, kFactor = 16;
  const char* key = config.Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  PENSTOCK_ASSIGN_OR_RETURN(const auto parameters, config.Object(key));
  if (parameters.has_value()) {
    PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
    PENSTOCK_ASSIGN_OR_RETURN(const double rate,
                              parameters->Number("llama_4_scaling_beta", 0.0, 1e3));
    growth.rate = static_cast<float>(rate);
    PENSTOCK_ASSIGN_OR_RETURN(
        growth.period, parameters->IntegerOr("original_max_position_embeddings", spec.max_position,
                                             1, 2147483647u));
    return absl::OkStatus();
  }
  growth = {.rate = 0.1f, .period = kOriginal};
  spec.rope = {.type = RopeType::kYarn,
               .dim = spec.head_dim,
               .theta = kTheta,
               .factor = kFactor,
               .original_max_position = kOriginal};
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMinistral3(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMinistral3Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  QueryGrowth growth;
  PENSTOCK_RETURN_IF_ERROR(ReadMinistral3Rope(config, spec, growth));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 0));
  spec.windows.assign(spec.layers, window);
  spec.build = [growth](DecoderBuilder& b) { BuildMinistral3(b, growth); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
