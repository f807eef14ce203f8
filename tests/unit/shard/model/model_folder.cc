#include "tests/unit/shard/model/model_folder.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <sstream>

#include "common/status.h"
#include "shard/model/architectures/architectures.h"
#include "tests/unit/shard/model/counted_new.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Processor time of this thread, so that other load does not count.
double ThreadSeconds() {
  timespec used = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

void Merge(json::object& object, const json::object& patch) {
  for (const auto& [key, value] : patch) {
    const json::string* text = value.if_string();
    if (text != nullptr && *text == "<absent>") {
      object.erase(key);
    } else if (value.is_object() && object.contains(key) && object[key].is_object()) {
      Merge(object[key].as_object(), value.as_object());
    } else {
      object[key] = value;
    }
  }
}

}  // namespace

ModelFolder::ModelFolder(const std::string& variant) {
  const std::string from = testing_support::ModelCheckpoints() + "/" + variant;
  for (const auto& entry : fs::directory_iterator(from)) {
    fs::copy_file(entry.path(), folder_ / entry.path().filename().string());
  }
}

std::string ModelFolder::Read(const std::string& file) const { return ReadFile(folder_ / file); }

std::uint64_t ModelFolder::Bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path())) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

void ModelFolder::PatchJson(const std::string& file, const std::string& patch) const {
  json::object object = json::parse(Read(file)).as_object();
  Merge(object, json::parse(patch).as_object());
  Write(file, json::serialize(object));
}

WeightFile ModelFolder::ReadWeights(const std::string& file) const {
  const std::string bytes = Read(file);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length |= std::uint64_t{static_cast<unsigned char>(bytes.at(i))} << (8 * i);
  }
  return {bytes.substr(8, length), bytes.substr(8 + length)};
}

void ModelFolder::WriteWeights(const WeightFile& weights, const std::string& file) const {
  Write(file, LengthPrefix(weights.header.size()) + weights.header + weights.data);
}

void ModelFolder::ChangeHeader(const std::function<void(json::object&)>& change) const {
  WeightFile weights = ReadWeights();
  json::object header = json::parse(weights.header).as_object();
  change(header);
  weights.header = json::serialize(header);
  WriteWeights(weights);
}

Refusal ModelFolder::Open(std::uint32_t rank, std::uint32_t world) const {
  const ModelOptions options{path(), std::nullopt, Device(), rank, world};
  Refusal refusal;
  const AllocationPeak peak;
  const double begin = ThreadSeconds();
  const auto model = Model::Open(options);
  refusal.seconds = ThreadSeconds() - begin;
  refusal.peak_bytes = peak.Bytes();
  if (!model.ok()) refusal.error = Message(model.status());
  return refusal;
}

std::string LengthPrefix(std::uint64_t length) {
  std::string prefix(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>(length >> (8 * i));
  return prefix;
}

std::vector<std::string> ServedVariants() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(testing_support::ModelCheckpoints())) {
    if (!entry.is_directory()) continue;
    const json::value recipe = json::parse(ReadFile(entry.path() / "test.json"));
    const json::value config = json::parse(ReadFile(entry.path() / "config.json"));
    const json::string& type = config.at("model_type").as_string();
    const bool known = FindArchitecture({type.data(), type.size()}) != nullptr;
    if (known && recipe.at("todo").as_string().empty()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace penstock::shard
