#include "tools/make-model/shape.h"

#include <array>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstdlib>

#include "common/json_text.h"

namespace penstock::make_model {
namespace {

namespace json = boost::json;

constexpr std::array<Shape, 5> kShapes = {{
    {"tiny", 64, 2, 8, 4, 16, 128, 320, 1024, 1e4, false},
    {"135m", 576, 30, 9, 3, 64, 1536, 49152, 2048, 1e4, true},
    {"0.5b", 896, 24, 14, 2, 64, 4864, 151936, 32768, 1e6, true},
    {"1.1b", 2048, 22, 32, 4, 64, 5632, 32000, 2048, 1e4, false},
    {"8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, 5e5, false},
}};

constexpr std::array<ModelKind, 5> kKinds = {{
    {"llama", "LlamaForCausalLM", false, false},
    {"qwen2", "Qwen2ForCausalLM", true, false},
    {"qwen3", "Qwen3ForCausalLM", false, true},
    {"mistral", "MistralForCausalLM", false, false},
    {"gpt_neox", "GPTNeoXForCausalLM", true, false},
}};

constexpr float kNormSpread = 0.1f;  // norm weights differ from 1, so that a forgotten one shows
constexpr float kBiasScale = 0.1f;
constexpr float kLogitScale = 3.0f;

class Table {
 public:
  Table(const Shape& shape, DType dtype) : shape_(shape), dtype_(dtype) {}

  void Matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns,
              float gain = 1.0f) {
    const float scale = gain / std::sqrt(static_cast<float>(columns));
    recipes.push_back({{name, dtype_, {rows, columns}}, 0.0f, scale});
  }
  void Bias(const std::string& name, std::uint64_t size) {
    recipes.push_back({{name, dtype_, {size}}, 0.0f, kBiasScale});
  }
  void Norm(const std::string& name, std::uint64_t size, float mean = 1.0f) {
    recipes.push_back({{name, dtype_, {size}}, mean, mean * kNormSpread});
  }

  // Weight and bias.
  void LayerNorm(const std::string& name, float mean = 1.0f) {
    Norm(name + ".weight", shape_.hidden, mean);
    Bias(name + ".bias", shape_.hidden);
  }
  void BiasedMatrix(const std::string& name, std::uint64_t rows, std::uint64_t columns,
                    float gain = 1.0f) {
    Matrix(name + ".weight", rows, columns, gain);
    Bias(name + ".bias", rows);
  }

  void GptNeoxLayer(std::uint32_t index) {
    const std::string prefix = "gpt_neox.layers." + std::to_string(index) + ".";
    LayerNorm(prefix + "input_layernorm");
    LayerNorm(prefix + "post_attention_layernorm");
    const std::uint64_t hidden = shape_.hidden;
    BiasedMatrix(prefix + "attention.query_key_value", 3 * hidden, hidden);
    BiasedMatrix(prefix + "attention.dense", hidden, hidden, BranchGain());
    BiasedMatrix(prefix + "mlp.dense_h_to_4h", shape_.intermediate, hidden);
    BiasedMatrix(prefix + "mlp.dense_4h_to_h", hidden, shape_.intermediate, 2 * BranchGain());
  }

  void LlamaLayer(const ModelKind& kind, std::uint32_t index) {
    const std::string prefix = "model.layers." + std::to_string(index) + ".";
    const std::uint64_t q = std::uint64_t{shape_.heads} * shape_.head_dim;
    const std::uint64_t kv = std::uint64_t{shape_.kv_heads} * shape_.head_dim;
    const float branch_gain = BranchGain();
    Norm(prefix + "input_layernorm.weight", shape_.hidden);
    Norm(prefix + "post_attention_layernorm.weight", shape_.hidden);
    const std::string attention = prefix + "self_attn.";
    Matrix(attention + "q_proj.weight", q, shape_.hidden);
    Matrix(attention + "k_proj.weight", kv, shape_.hidden);
    Matrix(attention + "v_proj.weight", kv, shape_.hidden);
    Matrix(attention + "o_proj.weight", shape_.hidden, q, branch_gain);
    if (kind.qkv_bias) {
      Bias(attention + "q_proj.bias", q);
      Bias(attention + "k_proj.bias", kv);
      Bias(attention + "v_proj.bias", kv);
    }
    if (kind.qk_norm) {
      Norm(attention + "q_norm.weight", shape_.head_dim);
      Norm(attention + "k_norm.weight", shape_.head_dim);
    }
    Matrix(prefix + "mlp.gate_proj.weight", shape_.intermediate, shape_.hidden);
    Matrix(prefix + "mlp.up_proj.weight", shape_.intermediate, shape_.hidden);
    Matrix(prefix + "mlp.down_proj.weight", shape_.hidden, shape_.intermediate, 2 * branch_gain);
  }

  std::vector<TensorRecipe> recipes;

 private:
  // Both branches of all layers together add about one unit of variance.
  float BranchGain() const { return 1.0f / std::sqrt(2.0f * static_cast<float>(shape_.layers)); }

  const Shape& shape_;
  DType dtype_;
};

template <class Row, std::size_t kCount, class Name>
const Row& Find(const std::array<Row, kCount>& rows, std::string_view wanted, Name name) {
  for (const Row& row : rows) {
    if (name(row) == wanted) return row;
  }
  std::abort();  // the option table admits only names of the array
}

template <class Row, std::size_t kCount, class Name>
std::string Join(const std::array<Row, kCount>& rows, Name name) {
  std::string text;
  for (const Row& row : rows) text.append(text.empty() ? "" : "|").append(name(row));
  return text;
}

constexpr auto kShapeName = [](const Shape& shape) { return shape.name; };
constexpr auto kKindName = [](const ModelKind& kind) { return kind.type; };

}  // namespace

const Shape& ShapeNamed(std::string_view name) { return Find(kShapes, name, kShapeName); }
std::string ShapeNames() { return Join(kShapes, kShapeName); }
const ModelKind& KindNamed(std::string_view type) { return Find(kKinds, type, kKindName); }
std::string KindNames() { return Join(kKinds, kKindName); }

std::vector<TensorRecipe> Recipes(const Shape& shape, const ModelKind& kind, DType dtype) {
  Table table(shape, dtype);
  if (IsGptNeox(kind)) {
    table.Matrix("gpt_neox.embed_in.weight", shape.vocabulary, shape.hidden);
    for (std::uint32_t i = 0; i < shape.layers; ++i) table.GptNeoxLayer(i);
    table.LayerNorm("gpt_neox.final_layer_norm", kLogitScale);
    if (!shape.tied_head) table.Matrix("embed_out.weight", shape.vocabulary, shape.hidden);
    return std::move(table.recipes);
  }
  table.Matrix("model.embed_tokens.weight", shape.vocabulary, shape.hidden);
  for (std::uint32_t i = 0; i < shape.layers; ++i) table.LlamaLayer(kind, i);
  table.Norm("model.norm.weight", shape.hidden, kLogitScale);
  if (!shape.tied_head) table.Matrix("lm_head.weight", shape.vocabulary, shape.hidden);
  return std::move(table.recipes);
}

std::string ConfigJson(const Shape& shape, const ModelKind& kind, DType dtype,
                       std::uint32_t sliding_window, std::int32_t bos,
                       const std::vector<std::int32_t>& eos) {
  json::object config;
  config["architectures"] = json::array{json::string(kind.architecture)};
  config["model_type"] = json::string(kind.type);
  config["hidden_size"] = shape.hidden;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["intermediate_size"] = shape.intermediate;
  config["vocab_size"] = shape.vocabulary;
  config["max_position_embeddings"] = shape.max_position;
  if (IsGptNeox(kind)) {
    config["hidden_act"] = "gelu";
    config["layer_norm_eps"] = kNormEpsilon;
    config["rotary_emb_base"] = shape.rope_theta;
    config["rotary_pct"] = 0.25;
    config["use_parallel_residual"] = true;
  } else {
    config["num_key_value_heads"] = shape.kv_heads;
    config["head_dim"] = shape.head_dim;
    config["hidden_act"] = "silu";
    config["rms_norm_eps"] = kNormEpsilon;
    config["rope_theta"] = shape.rope_theta;
  }
  config["tie_word_embeddings"] = shape.tied_head;
  config["torch_dtype"] = json::string(DTypeName(dtype));
  if (kind.type != "llama" && !IsGptNeox(kind)) {
    config["sliding_window"] = sliding_window == 0 ? json::value() : json::value(sliding_window);
  }
  if (kind.type.starts_with("qwen")) {
    config["use_sliding_window"] = sliding_window != 0;
    config["max_window_layers"] = 0;
  }
  config["bos_token_id"] = bos < 0 ? json::value() : json::value(bos);
  config["eos_token_id"] = eos.empty() ? json::value() : json::value(eos.front());
  return JsonText(config);
}

}  // namespace penstock::make_model
