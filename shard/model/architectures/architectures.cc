#include "shard/model/architectures/architectures.h"

namespace penstock::shard {

// Each in the file of its family.
ReadArchitecture ReadDeepSeekV2;
ReadArchitecture ReadDeepSeekV3;
ReadArchitecture ReadGemma;
ReadArchitecture ReadGemma2;
ReadArchitecture ReadGemma3;
ReadArchitecture ReadGemma3Text;
ReadArchitecture ReadGemma4;
ReadArchitecture ReadGemma4Text;
ReadArchitecture ReadGlm4Moe;
ReadArchitecture ReadGpt2;
ReadArchitecture ReadGptNeox;
ReadArchitecture ReadGptOss;
ReadArchitecture ReadGranite;
ReadArchitecture ReadLlama;
ReadArchitecture ReadMistral;
ReadArchitecture ReadMixtral;
ReadArchitecture ReadOpt;
ReadArchitecture ReadPhi3;
ReadArchitecture ReadQwen2;
ReadArchitecture ReadQwen2Moe;
ReadArchitecture ReadQwen3;
ReadArchitecture ReadQwen35;
ReadArchitecture ReadQwen35Moe;
ReadArchitecture ReadQwen35MoeText;
ReadArchitecture ReadQwen35Text;
ReadArchitecture ReadQwen3Moe;
ReadArchitecture ReadQwen3Next;
ReadArchitecture ReadSmolLm3;

namespace {

struct Row {
  std::string_view model_type;
  ReadArchitecture* read;
};

constexpr Row kRows[] = {
    {"deepseek_v2", ReadDeepSeekV2},
    {"deepseek_v3", ReadDeepSeekV3},  // DeepSeek-V3, DeepSeek-R1
    {"gemma", ReadGemma},
    {"gemma2", ReadGemma2},
    {"gemma3", ReadGemma3},
    {"gemma3_text", ReadGemma3Text},
    {"gemma4", ReadGemma4},
    {"gemma4_text", ReadGemma4Text},
    {"glm4_moe", ReadGlm4Moe},  // GLM-4.5, GLM-4.6
    {"gpt2", ReadGpt2},
    {"gpt_neox", ReadGptNeox},  // Pythia
    {"gpt_oss", ReadGptOss},
    {"granite", ReadGranite},  // Granite 3
    {"llama", ReadLlama},      // Llama 3, TinyLlama
    {"mistral", ReadMistral},  // Mistral 7B, Nemo
    {"mixtral", ReadMixtral},
    {"opt", ReadOpt},             // OPT, Galactica
    {"phi3", ReadPhi3},           // Phi-3, Phi-4-mini
    {"qwen2", ReadQwen2},         // Qwen2.5
    {"qwen2_moe", ReadQwen2Moe},  // Qwen1.5-MoE
    {"qwen3", ReadQwen3},
    {"qwen3_5", ReadQwen35},
    {"qwen3_5_moe", ReadQwen35Moe},
    {"qwen3_5_moe_text", ReadQwen35MoeText},
    {"qwen3_5_text", ReadQwen35Text},
    {"qwen3_moe", ReadQwen3Moe},  // Qwen3-30B-A3B
    {"qwen3_next", ReadQwen3Next},
    {"smollm3", ReadSmolLm3},
};

}  // namespace

ReadArchitecture* FindArchitecture(std::string_view model_type) {
  for (const Row& row : kRows) {
    if (row.model_type == model_type) return row.read;
  }
  return nullptr;
}

std::string ArchitectureNames() {
  std::string names;
  for (const Row& row : kRows) names.append(names.empty() ? "" : ", ").append(row.model_type);
  return names;
}

}  // namespace penstock::shard
