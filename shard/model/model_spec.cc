#include "shard/model/model_spec.h"

#include "common/short_text.h"
#include "common/status.h"
#include "shard/model/architectures/architectures.h"
#include "shard/weights/config_reader.h"

namespace penstock::shard {
namespace {

bool IsClassifier(const std::string& architecture) {
  return architecture.ends_with("ForSequenceClassification");
}

// A model without the head of a language model, or with one that predicts masked words.
bool IsEncoder(const std::string& architecture) {
  const bool bare = architecture.ends_with("Model") && !architecture.ends_with("LMHeadModel");
  return bare || architecture.ends_with("ForMaskedLM");
}

// The task for which the model was made, as far as its class tells.
Task TaskOf(const std::vector<std::string>& architectures, const TaskChoice& choice) {
  if (choice.wanted) return *choice.wanted;
  for (const std::string& name : architectures) {
    if (IsClassifier(name)) return Task::kClassify;
    if (IsEncoder(name)) return Task::kEmbed;
  }
  return choice.makes_vectors ? Task::kEmbed : Task::kGenerate;
}

// An encoder has no next token, and a classifier needs classes.
absl::Status CheckTask(const ConfigReader& config, bool chosen, ModelSpec& spec) {
  if (spec.both_ways && spec.task == Task::kGenerate) {
    if (chosen) return config.Bad("model_type", "that of a decoder with --task generate");
    spec.task = Task::kEmbed;
  }
  if (spec.task != Task::kClassify) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const auto architectures, config.StringsOr("architectures"));
  for (const std::string& name : architectures) {
    if (IsClassifier(name)) return absl::OkStatus();
  }
  return config.Bad("architectures",
                    "a classifier (…ForSequenceClassification) with --task classify");
}

// Refuses what would give wrong tokens if it were ignored.
absl::Status RefuseUnsupported(const ConfigReader& config, Task task) {
  if (config.Has("compression_config")) {
    return config.Bad("compression_config", "absent: this quantised form is not supported");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto architectures, config.StringsOr("architectures"));
  for (const std::string& name : architectures) {
    if (task != Task::kGenerate && (IsClassifier(name) || IsEncoder(name))) continue;
    const bool wrapper = name.ends_with("ForConditionalGeneration");
    if (wrapper && !config.Has("text_config")) {
      return config.Bad("text_config", "an object, the text model of " + ShortText(name, 100));
    }
    if (!name.ends_with("ForCausalLM") && !name.ends_with("LMHeadModel") && !wrapper) {
      return config.Bad("architectures", "a causal language model (…ForCausalLM)");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadQuantization(const ConfigReader& config, ModelSpec& spec) {
  constexpr char kKey[] = "quantization_config";
  PENSTOCK_ASSIGN_OR_RETURN(auto quantization, config.Object(kKey));
  PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
  if (!quantization.has_value() && text.has_value()) {
    PENSTOCK_ASSIGN_OR_RETURN(quantization, text->Object(kKey));
  }
  if (!quantization.has_value()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(spec.format, ReadStoredFormat(*quantization));
  return absl::OkStatus();
}

absl::Status ReadTiedHead(const ConfigReader& config, ModelSpec& spec) {
  const char* key = "tie_word_embeddings";
  if (!config.Has(key)) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
    return text.has_value() ? ReadTiedHead(*text, spec) : absl::OkStatus();
  }
  PENSTOCK_ASSIGN_OR_RETURN(spec.tied_head, config.BoolOr(key, false));
  return absl::OkStatus();
}

absl::Status ReadDType(const ConfigReader& config, ModelSpec& spec) {
  const char* key = config.Has("dtype") ? "dtype" : "torch_dtype";
  if (!config.Has(key)) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
    return text.has_value() ? ReadDType(*text, spec) : absl::OkStatus();
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, config.StringOr(key, ""));
  if (name.empty()) return absl::OkStatus();
  spec.stored_dtype = ParseDType(name);
  if (!spec.stored_dtype) return config.Bad(key, "one of float32, bfloat16, float16");
  return absl::OkStatus();
}

// The ids under `key`, at the top or else in the model's text part.
absl::StatusOr<std::vector<TokenId>> ConfigIds(const ConfigReader& config, const char* key,
                                               std::uint32_t vocabulary) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
  const bool top = config.Has(key) || !text.has_value();
  return top ? config.TokenIds(key, vocabulary) : text->TokenIds(key, vocabulary);
}

// The ids of generation_config.json replace those of config.json: it often has more end tokens.
absl::Status ReadSpecialTokens(const ConfigReader& config, const std::string& generation_json,
                               ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(spec.eos_token_ids, ConfigIds(config, "eos_token_id", spec.vocabulary));
  PENSTOCK_ASSIGN_OR_RETURN(auto bos, ConfigIds(config, "bos_token_id", spec.vocabulary));
  if (!generation_json.empty()) {
    const std::string file = "generation_config.json";
    PENSTOCK_ASSIGN_OR_RETURN(const auto object, ParseConfig(generation_json, file));
    const ConfigReader generation(object, file);
    if (generation.Has("eos_token_id")) {
      PENSTOCK_ASSIGN_OR_RETURN(spec.eos_token_ids,
                                generation.TokenIds("eos_token_id", spec.vocabulary));
    }
    if (generation.Has("bos_token_id")) {
      PENSTOCK_ASSIGN_OR_RETURN(bos, generation.TokenIds("bos_token_id", spec.vocabulary));
    }
  }
  if (!bos.empty()) spec.bos_token_id = bos.front();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSpec> ReadModelSpec(const std::string& config_json,
                                        const std::string& generation_config_json,
                                        const TaskChoice& choice) {
  const std::string file = "config.json";
  PENSTOCK_ASSIGN_OR_RETURN(const auto object, ParseConfig(config_json, file));
  const ConfigReader config(object, file);
  ModelSpec spec;
  PENSTOCK_ASSIGN_OR_RETURN(spec.model_type, config.StringOr("model_type", ""));
  ReadArchitecture* const read = FindArchitecture(spec.model_type);
  if (read == nullptr) return config.Bad("model_type", KnownModelTypes(spec.model_type));
  PENSTOCK_ASSIGN_OR_RETURN(const auto architectures, config.StringsOr("architectures"));
  spec.task = TaskOf(architectures, choice);
  PENSTOCK_RETURN_IF_ERROR(RefuseUnsupported(config, spec.task));
  PENSTOCK_RETURN_IF_ERROR(ReadQuantization(config, spec));
  PENSTOCK_RETURN_IF_ERROR(read(config, spec));
  PENSTOCK_RETURN_IF_ERROR(CheckTask(config, choice.wanted.has_value(), spec));
  PENSTOCK_RETURN_IF_ERROR(ReadTiedHead(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadDType(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSpecialTokens(config, generation_config_json, spec));
  return spec;
}

}  // namespace penstock::shard
