#include "tests/unit/text/shared_data.h"

#include <boost/json.hpp>
#include <fstream>
#include <iterator>

namespace penstock::text {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

boost::json::value ReadJson(const std::string& path) { return boost::json::parse(ReadFile(path)); }

std::string Text(const boost::json::value& value) {
  return std::string(value.as_string().data(), value.as_string().size());
}

}  // namespace penstock::text
