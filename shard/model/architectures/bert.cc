// BERT (arXiv:1810.04805), RoBERTa and XLM-RoBERTa: encoders with learned positions, an embedding
// of the part of the text, and norms after the branches. The positions of the latter two begin
// after the row of the padding token.
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes.
constexpr SizeKeys kBert{.hidden = 768,
                         .layers = 12,
                         .heads = 12,
                         .intermediate = 3072,
                         .vocabulary = 30522,
                         .positions = 512};
constexpr SizeKeys kRoberta{.hidden = 768,
                            .layers = 12,
                            .heads = 12,
                            .intermediate = 3072,
                            .vocabulary = 50265,
                            .positions = 512};

struct Bert {
  std::string prefix;  // of a model with a head
  Activation activation = Activation::kGelu;
  std::uint32_t offset = 0;  // of positions
  std::uint32_t parts = 2;
};

void IgnoreHeads(DecoderBuilder& b, const Bert& model) {
  b.Ignore("embeddings.position_ids");
  for (const std::string& prefix : {model.prefix, std::string()}) {
    b.IgnorePrefix(prefix + "pooler.");
  }
  for (const char* head : {"classifier.", "cls.", "lm_head."}) b.IgnorePrefix(head);
}

void BuildBert(DecoderBuilder& b, const Bert& model) {
  b.Prefix({model.prefix, ""}, "embeddings.word_embeddings.weight");
  IgnoreHeads(b, model);
  b.Embedding("embeddings.word_embeddings.weight", "");
  b.LearnedPositions("embeddings.position_embeddings.weight", model.offset);
  b.PartEmbedding("embeddings.token_type_embeddings.weight", model.parts);
  b.StreamLayerNorm("embeddings.LayerNorm");
  b.Layers("encoder.layer", [&](std::uint32_t) {
    b.Qkv("attention.self.query", "attention.self.key", "attention.self.value");
    b.NoRope();
    b.AttentionBothWays(0);
    b.AttentionOutput("attention.output.dense");
    b.AddToResidual();
    b.StreamLayerNorm("attention.output.LayerNorm");
    b.Mlp("intermediate.dense", model.activation, "output.dense");
    b.AddToResidual();
    b.StreamLayerNorm("output.LayerNorm");
  });
  b.Head();
}

absl::Status ReadBertShared(const ConfigReader& config, const SizeKeys& sizes, Bert& model,
                            ModelSpec& spec) {
  spec.both_ways = true;
  spec.tied_head = true;
  spec.class_pooling = PoolingKind::kCls;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_eps", 1e-12, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string positions,
                            config.StringOr("position_embedding_type", "absolute"));
  if (positions != "absolute") return config.Bad("position_embedding_type", "absolute");
  PENSTOCK_ASSIGN_OR_RETURN(const bool decoder, config.BoolOr("is_decoder", false));
  if (decoder) return config.Bad("is_decoder", "false: this is an encoder");
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_act", Activation::kGelu));
  PENSTOCK_ASSIGN_OR_RETURN(model.parts, config.IntegerOr("type_vocab_size", 2, 1, 1 << 16));
  return absl::OkStatus();
}

absl::Status ReadRobertaOf(const ConfigReader& config, const SizeKeys& sizes, ModelSpec& spec) {
  Bert model{.prefix = "roberta."};
  PENSTOCK_RETURN_IF_ERROR(ReadBertShared(config, sizes, model, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t padding,
                            config.IntegerOr("pad_token_id", 1, 0, spec.vocabulary - 1));
  model.offset = padding + 1;
  if (spec.max_position <= model.offset) {
    return config.Bad("max_position_embeddings", "above `pad_token_id` + 1");
  }
  spec.max_position -= model.offset;
  spec.class_layers = {{.name = "classifier.dense",
                        .inputs = spec.hidden,
                        .outputs = spec.hidden,
                        .activation = HeadActivation::kTanh},
                       {.name = "classifier.out_proj", .inputs = spec.hidden}};
  spec.build = [model](DecoderBuilder& b) { BuildBert(b, model); };
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBert(const ConfigReader& config, ModelSpec& spec) {
  Bert model{.prefix = "bert."};
  PENSTOCK_RETURN_IF_ERROR(ReadBertShared(config, kBert, model, spec));
  spec.class_layers = {{.name = "bert.pooler.dense",
                        .inputs = spec.hidden,
                        .outputs = spec.hidden,
                        .activation = HeadActivation::kTanh},
                       {.name = "classifier", .inputs = spec.hidden}};
  spec.build = [model](DecoderBuilder& b) { BuildBert(b, model); };
  return absl::OkStatus();
}

absl::Status ReadRoberta(const ConfigReader& config, ModelSpec& spec) {
  return ReadRobertaOf(config, kRoberta, spec);
}

absl::Status ReadXlmRoberta(const ConfigReader& config, ModelSpec& spec) {
  return ReadRobertaOf(config, kBert, spec);  // the sizes of BERT
}

}  // namespace penstock::shard
