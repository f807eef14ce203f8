#include "shard/model/architectures/architectures.h"

// A line for each model type: its name in config.json, and the function of its file.
#define PENSTOCK_ARCHITECTURES(row)                                           \
  row("llama", ReadLlama) row("mistral", ReadMistral) row("qwen2", ReadQwen2) \
      row("qwen3", ReadQwen3)

namespace penstock::shard {

#define PENSTOCK_DECLARE(name, read) ReadArchitecture read;
PENSTOCK_ARCHITECTURES(PENSTOCK_DECLARE)
#undef PENSTOCK_DECLARE

namespace {

struct Row {
  std::string_view model_type;
  ReadArchitecture* read;
};

#define PENSTOCK_ROW(name, read) {name, read},
constexpr Row kRows[] = {PENSTOCK_ARCHITECTURES(PENSTOCK_ROW)};
#undef PENSTOCK_ROW

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
