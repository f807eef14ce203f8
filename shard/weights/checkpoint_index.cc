#include "shard/weights/checkpoint_index.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/json_parse.h"
#include "common/short_text.h"
#include "common/status.h"
#include "shard/weights/safetensors_header.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

bool IsPlainFileName(const std::string& name) {
  constexpr std::string_view kSuffix = ".safetensors";
  return name.size() > kSuffix.size() && name.size() <= 255 && name.front() != '.' &&
         std::string_view(name).ends_with(kSuffix) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) || c == '.' || c == '_' || c == '-');
         });
}

absl::StatusOr<std::uint64_t> TotalSize(const json::value& value) {
  // Some writers store it as 1.23e9.
  if (value.is_double() && value.get_double() >= 0 && value.get_double() < 1e18) {
    return static_cast<std::uint64_t>(value.get_double());
  }
  if (value.is_int64() && value.get_int64() >= 0) {
    return static_cast<std::uint64_t>(value.get_int64());
  }
  return BadValue("metadata.total_size", json::serialize(value), "a number of bytes");
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, std::uint64_t limit) {
  std::error_code ec;
  const std::uint64_t size = std::filesystem::file_size(path, ec);
  if (ec)
    return absl::NotFoundError("cannot be read: " + ec.message());  // a pipe gives this error, too
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError("cannot be read: " + std::generic_category().message(errno));
  }
  if (size > limit) {
    return BadValue("file size", std::to_string(size),
                    "at most " + std::to_string(limit) + " bytes");
  }
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

absl::StatusOr<CheckpointIndex> ParseCheckpointIndex(const std::string& text) {
  constexpr std::size_t kMaxDepth = 8;
  PENSTOCK_ASSIGN_OR_RETURN(const json::value root, ParseJson(text, kMaxDepth));
  const json::object* object = root.if_object();
  const json::value* map = object == nullptr ? nullptr : object->if_contains("weight_map");
  if (map == nullptr || !map->is_object() || map->get_object().empty()) {
    return absl::InvalidArgumentError("`weight_map` must be an object of tensor names");
  }
  CheckpointIndex index;
  for (const auto& [tensor, file] : map->get_object()) {
    const std::string name(tensor.data(), tensor.size());
    PENSTOCK_RETURN_IF_ERROR(CheckTensorName(name));
    const json::string* value = file.if_string();
    const std::string file_name = value == nullptr ? "" : std::string(value->data(), value->size());
    if (!IsPlainFileName(file_name)) {
      return BadValue("weight_map[" + name + "]", ShortText(json::serialize(file), 100),
                      "a plain file name that ends in .safetensors");
    }
    index.file_of.emplace(name, file_name);
  }
  const json::value* metadata = object->if_contains("metadata");
  if (metadata != nullptr && metadata->is_object()) {
    if (const json::value* total = metadata->get_object().if_contains("total_size")) {
      PENSTOCK_ASSIGN_OR_RETURN(index.total_bytes, TotalSize(*total));
    }
  }
  return index;
}

}  // namespace penstock::shard
