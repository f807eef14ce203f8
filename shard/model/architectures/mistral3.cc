// Models that read images and text: Mistral Small 3.1 and Ministral 3 (Mistral AI), and LLaVA.
// Their text model is of another type, which text_config names. Penstock serves the text model
// only.
#include <string>
#include <utility>

#include "common/status.h"
#include "shard/model/architectures/architectures.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// `usual`: the type of a text_config without model_type.
absl::Status ReadTextPart(const ConfigReader& config, const char* usual, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
  if (!text.has_value()) return config.Bad("text_config", "an object");
  PENSTOCK_ASSIGN_OR_RETURN(const std::string type, text->StringOr("model_type", usual));
  ReadArchitecture* const read = FindArchitecture(type);
  if (read == nullptr) return text->Bad("model_type", KnownModelTypes(type));
  if (text->Has("text_config")) return text->Bad("text_config", "absent");
  PENSTOCK_RETURN_IF_ERROR(read(*text, spec));
  spec.build = [build = std::move(spec.build)](DecoderBuilder& b) {
    b.SetWrapped();
    for (const char* other : {"vision_tower.", "multi_modal_projector."}) {
      b.IgnorePrefix(other);
      b.IgnorePrefix(std::string("model.") + other);
    }
    build(b);
  };
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMistral3(const ConfigReader& config, ModelSpec& spec) {
  return ReadTextPart(config, "mistral", spec);
}

absl::Status ReadLlava(const ConfigReader& config, ModelSpec& spec) {
  return ReadTextPart(config, "llama", spec);
}

}  // namespace penstock::shard
