#include "shard/weights/formats/stored_format.h"

#include <string_view>

#include "common/status.h"
#include "shard/weights/formats/format_methods.h"

namespace penstock::shard {

// Each reader is in the file of its family.
#define PENSTOCK_DECLARE(name, read) ReadFormat read;
PENSTOCK_FORMAT_METHODS(PENSTOCK_DECLARE)
#undef PENSTOCK_DECLARE

namespace {

struct Method {
  std::string_view name;
  ReadFormat* read;
};

#define PENSTOCK_ROW(name, read) {name, read},
constexpr Method kMethods[] = {PENSTOCK_FORMAT_METHODS(PENSTOCK_ROW)};
#undef PENSTOCK_ROW

// Old files of bitsandbytes do not name it.
std::string DefaultMethod(const ConfigReader& config) {
  return config.Has("load_in_8bit") || config.Has("load_in_4bit") ? "bitsandbytes" : "";
}

}  // namespace

absl::StatusOr<StoredFormatPtr> ReadStoredFormat(const ConfigReader& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string wanted,
                            config.StringOr("quant_method", DefaultMethod(config)));
  std::string names;
  for (const Method& method : kMethods) {
    if (method.name == wanted) return method.read(config);
    names += (names.empty() ? "" : ", ") + std::string(method.name);
  }
  return config.Bad("quant_method", "one of " + names);
}

}  // namespace penstock::shard
