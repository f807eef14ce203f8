#include "tests/unit/shard/backend/model_checkpoints.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

const char* OtherSeed() { return std::getenv("PENSTOCK_MODEL_ORACLE"); }

}  // namespace

std::string GoldenFolder() {
  if (OtherSeed() != nullptr) return std::string(OtherSeed()) + "/goldens";
  return testing_support::SourcePath("tests/data/goldens/models");
}

std::string CheckpointFolder() {
  if (OtherSeed() != nullptr) return std::string(OtherSeed()) + "/checkpoints";
  return (fs::read_symlink("/proc/self/exe").parent_path() / "model_checkpoints").string();
}

std::string AdapterFolder() {
  return (fs::read_symlink("/proc/self/exe").parent_path() / "model_adapters").string();
}

std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(GoldenFolder(), ec)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string TodoOf(const std::string& name) {
  const std::ifstream file(CheckpointFolder() + "/" + name + "/test.json");
  std::ostringstream text;
  text << file.rdbuf();
  return boost::json::value_to<std::string>(boost::json::parse(text.str()).at("todo"));
}

}  // namespace penstock::shard
