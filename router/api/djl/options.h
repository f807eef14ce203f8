// What an operator says about DJL's interface (serving.properties). Defaults are the options
// table's.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::router {

struct DjlOptions {
  bool is_default = false;  // of routes that several interfaces have
  std::string decoding_strategy = "greedy";
  std::string output_formatter = "auto";
  bool tgi_compat = false;
  std::uint32_t max_inputs = 32;  // of one request
};

}  // namespace penstock::router
