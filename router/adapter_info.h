// A LoRA adapter beside the model, as GET /adapters shows it.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::router {

struct AdapterInfo {
  std::string name;
  std::string folder;  // on the machine of the shards
  std::uint32_t rank = 0;
  std::uint64_t bytes = 0;  // of all ranks of a group
  bool unloading = false;   // takes no new requests
  std::uint32_t requests = 0;
  friend bool operator==(const AdapterInfo&, const AdapterInfo&) = default;
};

}  // namespace penstock::router
