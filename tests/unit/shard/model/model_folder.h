// A copy of one of the tiny checkpoints, which tests damage, and what opening it gives.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "shard/model/model.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {

// A safetensors file in memory.
struct WeightFile {
  std::string header;  // JSON
  std::string data;
};

struct Refusal {
  std::string error;           // empty: the folder was opened
  double seconds = 0.0;        // of the processor
  std::size_t peak_bytes = 0;  // AllocationPeak
};

class ModelFolder {
 public:
  // `variant`: TYPE-VARIANT of tests/oracle.
  explicit ModelFolder(const std::string& variant);

  const std::string& path() const { return folder_.path(); }
  std::string Read(const std::string& file) const;
  void Write(const std::string& file, const std::string& bytes) const {
    folder_.Write(file, bytes);
  }
  void Remove(const std::string& file) const { std::filesystem::remove(folder_ / file); }
  // The bytes of all its files.
  std::uint64_t Bytes() const;

  // Merges `patch`, as RFC 7386 says, into a JSON file; but null is a value, and "<absent>" removes
  // the key.
  void PatchJson(const std::string& file, const std::string& patch) const;

  WeightFile ReadWeights(const std::string& file = "model.safetensors") const;
  void WriteWeights(const WeightFile& weights, const std::string& file = "model.safetensors") const;
  // Changes the header. The data stays.
  void ChangeHeader(const std::function<void(boost::json::object&)>& change) const;

  // Opens it as a shard does when it starts.
  Refusal Open(std::uint32_t rank = 0, std::uint32_t world = 1) const;

 private:
  TempFolder folder_;
};

// The length that begins a safetensors file.
std::string LengthPrefix(std::uint64_t length);

// The variants of all model types that the shard serves.
std::vector<std::string> ServedVariants();

}  // namespace penstock::shard
