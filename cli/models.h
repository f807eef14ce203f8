// `penstock models`: the models of the Hugging Face cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/words.h"
#include "common/options/table.h"

namespace penstock::cli {

struct CachedModel {
  std::string name;    // "org/name"
  std::string folder;  // of the snapshot; empty: there is none
  std::uint64_t bytes = 0;
};

// In the order of their names. A cache that does not exist has none.
std::vector<CachedModel> ListCache(const std::string& cache);

options::ProgramOptions ModelsOptions();

int Models(const Words& words);

}  // namespace penstock::cli
