#include "shard/model/architectures/architectures.h"

namespace penstock::shard {

// Each in the file of its family.
ReadArchitecture ReadGptNeox;
ReadArchitecture ReadLlama;
ReadArchitecture ReadMistral;
ReadArchitecture ReadQwen2;
ReadArchitecture ReadQwen3;

namespace {

struct Row {
  std::string_view model_type;
  ReadArchitecture* read;
};

constexpr Row kRows[] = {
    {"gpt_neox", ReadGptNeox},  // Pythia
    {"llama", ReadLlama},       // Llama 3, TinyLlama
    {"mistral", ReadMistral},   // Mistral 7B, Nemo
    {"qwen2", ReadQwen2},       // Qwen2.5
    {"qwen3", ReadQwen3},
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
