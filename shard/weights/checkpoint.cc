#include "shard/weights/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/status.h"
#include "shard/weights/checkpoint_index.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr std::uint64_t kMaxIndexBytes = 100'000'000;

bool Exists(const fs::path& path) {
  std::error_code ec;
  return fs::exists(fs::symlink_status(path, ec)) && !ec;
}

// The index and the files must name the same tensors at the same places.
absl::Status CheckAgainstIndex(const CheckpointIndex& index, const Checkpoint& checkpoint) {
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const auto entry = index.file_of.find(tensor.info->name);
    const std::string& file = checkpoint.FileName(tensor);
    if (entry == index.file_of.end() || entry->second != file) {
      return absl::InvalidArgumentError(
          file + ": holds tensor " + tensor.info->name + ", which " + kIndexFile +
          (entry == index.file_of.end() ? " does not list" : " places in " + entry->second));
    }
  }
  for (const auto& [name, file] : index.file_of) {
    if (checkpoint.Find(name) == nullptr) {
      return absl::InvalidArgumentError(std::string(kIndexFile) + ": places tensor " + name +
                                        " in " + file + ", which does not hold it");
    }
  }
  if (index.total_bytes.has_value() && *index.total_bytes != checkpoint.total_bytes()) {
    return WithContext(
        BadValue("metadata.total_size", std::to_string(*index.total_bytes),
                 "the sum of the tensors, " + std::to_string(checkpoint.total_bytes())),
        kIndexFile);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& folder) {
  std::error_code ec;
  if (!fs::is_directory(folder, ec)) {
    return absl::NotFoundError(folder + ": is not a folder of a model");
  }
  Checkpoint checkpoint;
  const fs::path index_path = fs::path(folder) / kIndexFile;
  if (Exists(index_path)) {
    PENSTOCK_RETURN_IF_ERROR(checkpoint.OpenIndexed(folder, index_path.string()));
    return checkpoint;
  }
  const fs::path single = fs::path(folder) / kSingleFile;
  if (!Exists(single)) {
    return absl::NotFoundError(folder + ": has neither " + kSingleFile + " nor " + kIndexFile);
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto file, SafetensorsFile::Open(single.string()));
  checkpoint.files_.push_back(std::move(file));
  PENSTOCK_RETURN_IF_ERROR(checkpoint.BuildTable());
  return checkpoint;
}

absl::Status Checkpoint::OpenIndexed(const std::string& folder, const std::string& index_path) {
  auto text = ReadSmallFile(index_path, kMaxIndexBytes);
  if (!text.ok()) return WithContext(text.status(), kIndexFile);
  auto index = ParseCheckpointIndex(*text);
  if (!index.ok()) return WithContext(index.status(), kIndexFile);
  std::set<std::string> names;
  for (const auto& [tensor, file] : index->file_of) names.insert(file);
  for (const std::string& name : names) {
    auto file = SafetensorsFile::Open((fs::path(folder) / name).string());
    if (absl::IsNotFound(file.status())) {
      return absl::NotFoundError(Message(file.status()) + "; " + kIndexFile + " names it");
    }
    if (!file.ok()) return file.status();
    files_.push_back(*std::move(file));
  }
  PENSTOCK_RETURN_IF_ERROR(BuildTable());
  return CheckAgainstIndex(*index, *this);
}

absl::Status Checkpoint::BuildTable() {
  for (std::uint32_t i = 0; i < files_.size(); ++i) {
    for (const TensorInfo& info : files_[i]->tensors()) {
      tensors_.push_back({&info, i});
      total_bytes_ += info.bytes;
    }
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const CheckpointTensor& a, const CheckpointTensor& b) {
              return a.info->name < b.info->name;
            });
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!by_name_.emplace(tensors_[i].info->name, i).second) {
      return absl::InvalidArgumentError(FileName(tensors_[i]) + ": tensor " +
                                        tensors_[i].info->name + " is in another file too");
    }
  }
  return absl::OkStatus();
}

std::string Checkpoint::Identity() const {
  std::string text;
  for (const auto& file : files_) {
    const std::string line = file->Identity();
    if (line.empty()) return "";
    text += line + "\n";
  }
  return text;
}

std::string Checkpoint::Noted() const {
  std::string text;
  for (const auto& file : files_) text += file->Noted() + "\n";
  return text;
}

const CheckpointTensor* Checkpoint::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace penstock::shard
