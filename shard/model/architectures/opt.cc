// OPT (arXiv:2205.01068) and Galactica: LayerNorm, learned positions that begin at row 2. One size
// of OPT, 350m, has its norms after the branches and embeddings of half the width.
#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/projected_words.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kOptSizes{.hidden = 768,
                             .layers = 12,
                             .heads = 12,
                             .intermediate = 3072,
                             .vocabulary = 50272,
                             .positions = 2048,
                             .intermediate_key = "ffn_dim"};

struct Opt {
  Activation activation = Activation::kRelu;
  bool norm_first = true;
  bool final_norm = true;
  std::uint32_t words = 0;  // columns of the embedding
};

void BuildOpt(DecoderBuilder& b, const Opt& model) {
  b.Prefix({"model.decoder.", "decoder.", ""}, "embed_tokens.weight");
  const bool projected = model.words != b.spec().hidden;
  if (projected) {
    AddProjectedWords(b, "embed_tokens.weight", "lm_head.weight", "project_in", model.words);
  } else {
    b.Embedding("embed_tokens.weight", "lm_head.weight");
  }
  b.LearnedPositions("embed_positions.weight", 2);
  if (!model.norm_first) b.NoNorm();
  b.Layers("layers", [&](std::uint32_t) {
    if (model.norm_first) b.LayerNorm("self_attn_layer_norm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.NoRope();
    b.Attention(0);
    b.AttentionOutput("self_attn.out_proj");
    b.AddToResidual();
    if (model.norm_first) {
      b.LayerNorm("final_layer_norm");
    } else {
      b.StreamLayerNorm("self_attn_layer_norm");
    }
    b.Mlp("fc1", model.activation, "fc2");
    b.AddToResidual();
    if (!model.norm_first) b.StreamLayerNorm("final_layer_norm");
  });
  if (model.norm_first) model.final_norm ? b.LayerNorm("final_layer_norm") : b.NoNorm();
  if (projected) AddOutputProjection(b, "project_out");
  b.Head();
}

}  // namespace

absl::Status ReadOpt(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kOptSizes, spec));
  spec.norm_eps = 1e-5f;
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Opt model;
  PENSTOCK_ASSIGN_OR_RETURN(model.words,
                            config.IntegerOr("word_embed_proj_dim", spec.hidden, 1, spec.hidden));
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "activation_function", Activation::kRelu));
  PENSTOCK_ASSIGN_OR_RETURN(model.norm_first, config.BoolOr("do_layer_norm_before", true));
  PENSTOCK_ASSIGN_OR_RETURN(const bool removed, config.BoolOr("_remove_final_layer_norm", false));
  model.final_norm = !removed;
  spec.build = [model](DecoderBuilder& b) { BuildOpt(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
