#include "shard/weights/safetensors_writer.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cctype>
#include <cerrno>
#include <system_error>

namespace penstock::shard {
namespace {

namespace json = boost::json;

std::string StoredName(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "F32";
    case DType::kBFloat16:
      return "BF16";
    case DType::kFloat16:
      return "F16";
  }
  return "";
}

// Length prefix and JSON, padded with spaces to a multiple of 8.
std::string Header(const std::vector<TensorSpec>& table) {
  json::object root;
  root["__metadata__"] = json::object{{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const TensorSpec& tensor : table) {
    json::object entry;
    entry["dtype"] = StoredName(tensor.dtype);
    entry["shape"] = json::array(tensor.shape.begin(), tensor.shape.end());
    entry["data_offsets"] = json::array{offset, offset + tensor.Bytes()};
    root[tensor.name] = std::move(entry);
    offset += tensor.Bytes();
  }
  std::string text = json::serialize(root);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string prefix(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>(text.size() >> (8 * i));
  return prefix + text;
}

}  // namespace

std::uint64_t TensorSpec::Bytes() const {
  std::uint64_t bytes = DTypeBytes(dtype);
  for (std::uint64_t size : shape) bytes *= size;
  return bytes;
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<TensorSpec>& table)
    : path_(path), file_(std::fopen(path.c_str(), "wbe")) {
  const std::string header = Header(table);
  remaining_ = header.size();
  for (const TensorSpec& tensor : table) remaining_ += tensor.Bytes();
  Append(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  if (!status_.ok()) return;
  if (bytes.size() > remaining_) {
    status_ = absl::InternalError(path_ + ": more bytes than its table of tensors states");
    return;
  }
  if (!file_ || std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    status_ = absl::UnavailableError(
        path_ + ": cannot be written: " + std::generic_category().message(errno));
    return;
  }
  remaining_ -= bytes.size();
}

absl::Status SafetensorsWriter::Finish() {
  if (status_.ok() && remaining_ != 0) {
    status_ = absl::InternalError(path_ + ": fewer bytes than its table of tensors states");
  }
  if (std::FILE* file = file_.release();
      file != nullptr && std::fclose(file) != 0 && status_.ok()) {
    status_ = absl::UnavailableError(
        path_ + ": cannot be written: " + std::generic_category().message(errno));
  }
  return status_;
}

}  // namespace penstock::shard
