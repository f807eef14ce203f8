#include "tools/make-model/gguf.h"

#include <cstring>
#include <fstream>
#include <span>
#include <string_view>

#include "common/status.h"
#include "shard/weights/convert.h"
#include "tools/make-model/random_values.h"

namespace penstock::make_model {
namespace {

constexpr std::uint64_t kAlignment = 32;
constexpr std::string_view kLayerPrefix = "model.layers.";

std::uint64_t Aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// ggml_type.
std::uint32_t TypeId(DType dtype) {
  if (dtype == DType::kBFloat16) return 30;
  return dtype == DType::kFloat16 ? 1 : 0;
}

// llama_ftype: what most tensors are.
std::uint32_t FileType(DType dtype) {
  if (dtype == DType::kBFloat16) return 32;
  return dtype == DType::kFloat16 ? 1 : 0;
}

// Names of tensors: those of Hugging Face and llama.cpp's.
constexpr std::string_view kNames[][2] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

std::string GgufName(std::string_view name) {
  std::string prefix;
  if (name.starts_with(kLayerPrefix)) {
    name.remove_prefix(kLayerPrefix.size());
    const std::size_t dot = name.find('.');
    prefix = "blk." + std::string(name.substr(0, dot)) + ".";
    name.remove_prefix(dot + 1);
  }
  const std::size_t dot = name.rfind('.');  // before "weight" or "bias"
  for (const auto& [from, to] : kNames) {
    if (name.substr(0, dot) == from) return prefix.append(to).append(name.substr(dot));
  }
  return prefix.append(name);
}

// Appends little-endian values.
class Head {
 public:
  template <class T>
  void Put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void PutString(std::string_view text) {
    Put<std::uint64_t>(text.size());
    text_.append(text);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Keys and values, counted.
class Facts {
 public:
  void Add(std::string_view key, std::uint32_t value) {
    Begin(key, 4);
    head_.Put(value);
  }
  void Add(std::string_view key, float value) {
    Begin(key, 6);
    head_.Put(value);
  }
  void Add(std::string_view key, std::string_view value) {
    Begin(key, 8);
    head_.PutString(value);
  }
  std::uint64_t count() const { return count_; }
  const std::string& text() const { return head_.text(); }

 private:
  void Begin(std::string_view key, std::uint32_t type) {
    head_.PutString(key);
    head_.Put(type);
    ++count_;
  }
  Head head_;
  std::uint64_t count_ = 0;
};

bool IsQwen(const ModelKind& kind) { return kind.type.starts_with("qwen"); }

Facts FactsOf(const GgufModel& model) {
  const Shape& shape = model.shape;
  const std::string arch = IsQwen(model.kind) ? std::string(model.kind.type) : "llama";
  Facts facts;
  facts.Add("general.architecture", std::string_view(arch));
  facts.Add("general.name", shape.name);
  facts.Add("general.file_type", FileType(model.dtype));
  facts.Add(arch + ".context_length", shape.max_position);
  facts.Add(arch + ".embedding_length", shape.hidden);
  facts.Add(arch + ".block_count", shape.layers);
  facts.Add(arch + ".feed_forward_length", shape.intermediate);
  facts.Add(arch + ".attention.head_count", shape.heads);
  facts.Add(arch + ".attention.head_count_kv", shape.kv_heads);
  facts.Add(arch + ".attention.key_length", shape.head_dim);
  facts.Add(arch + ".attention.value_length", shape.head_dim);
  facts.Add(arch + ".attention.layer_norm_rms_epsilon", static_cast<float>(kNormEpsilon));
  facts.Add(arch + ".rope.dimension_count", shape.head_dim);
  facts.Add(arch + ".rope.freq_base", static_cast<float>(shape.rope_theta));
  facts.Add(arch + ".vocab_size", shape.vocabulary);
  facts.Add("tokenizer.ggml.model", std::string_view("no_vocab"));
  return facts;
}

DType StoredType(const TensorRecipe& recipe) {
  return recipe.tensor.shape.size() == 1 ? DType::kFloat32 : recipe.tensor.dtype;
}

std::uint64_t StoredBytes(const TensorRecipe& recipe) {
  return recipe.tensor.Bytes() / DTypeBytes(recipe.tensor.dtype) * DTypeBytes(StoredType(recipe));
}

std::string FileHead(const GgufModel& model, const std::vector<TensorRecipe>& recipes) {
  const Facts facts = FactsOf(model);
  Head head;
  for (const char letter : {'G', 'G', 'U', 'F'}) head.Put(letter);
  head.Put<std::uint32_t>(3);
  head.Put<std::uint64_t>(recipes.size());
  head.Put<std::uint64_t>(facts.count());
  Head tensors;
  std::uint64_t offset = 0;
  for (const TensorRecipe& recipe : recipes) {
    tensors.PutString(GgufName(recipe.tensor.name));
    const auto& sizes = recipe.tensor.shape;
    tensors.Put(static_cast<std::uint32_t>(sizes.size()));
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) tensors.Put(*size);
    tensors.Put(TypeId(StoredType(recipe)));
    tensors.Put(offset);
    offset += Aligned(StoredBytes(recipe));
  }
  const std::string text = head.text() + facts.text() + tensors.text();
  return text + std::string(Aligned(text.size()) - text.size(), '\0');
}

// llama.cpp rotates neighbouring values of a Llama head, Hugging Face values that are half a head
// apart: rows of queries and keys change places.
std::vector<std::byte> Interleaved(const std::vector<std::byte>& rows, std::size_t row_bytes,
                                   std::size_t head_dim) {
  std::vector<std::byte> moved(rows.size());
  const std::size_t half = head_dim / 2;
  for (std::size_t row = 0; row < rows.size() / row_bytes; ++row) {
    const std::size_t in_head = row % head_dim;
    const std::size_t to = row - in_head + in_head % half * 2 + in_head / half;
    std::memcpy(moved.data() + to * row_bytes, rows.data() + row * row_bytes, row_bytes);
  }
  return moved;
}

bool IsRotated(const GgufModel& model, std::string_view name) {
  return !IsQwen(model.kind) &&
         (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight"));
}

std::vector<std::byte> ValuesOf(const GgufModel& model, const TensorRecipe& recipe) {
  const DType dtype = recipe.tensor.dtype;
  std::vector<std::byte> values(recipe.tensor.Bytes());
  RandomValues(model.seed, recipe.tensor.name, recipe.mean, recipe.scale, dtype).Fill(values);
  if (IsRotated(model, recipe.tensor.name)) {
    const std::size_t row_bytes = recipe.tensor.shape[1] * DTypeBytes(dtype);
    values = Interleaved(values, row_bytes, model.shape.head_dim);
  }
  if (StoredType(recipe) == dtype) return values;
  std::vector<std::byte> widened(StoredBytes(recipe));
  shard::ConvertElements(values.data(), dtype, widened.data(), DType::kFloat32,
                         values.size() / DTypeBytes(dtype));
  return widened;
}

}  // namespace

absl::Status WriteGguf(const GgufModel& model, const std::vector<TensorRecipe>& recipes,
                       const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  out << FileHead(model, recipes);
  for (const TensorRecipe& recipe : recipes) {
    std::vector<std::byte> values = ValuesOf(model, recipe);
    values.resize(Aligned(values.size()));
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size()));
  }
  out.close();
  if (!out) return absl::UnavailableError(path + ": cannot be written");
  return absl::OkStatus();
}

}  // namespace penstock::make_model
