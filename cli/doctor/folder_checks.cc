#include "cli/doctor/folder_checks.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/human_bytes.h"
#include "common/status.h"
#include "launcher/preflight.h"
#include "launcher/socket_dir.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLeastForModels = 1ull << 30;
constexpr std::uint64_t kLeast = 1 << 20;

// Bytes of the files of a folder.
std::uint64_t FileBytes(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  }
  return bytes;
}

// The folder, or the nearest part of its path that exists.
fs::path Existing(fs::path path) {
  std::error_code error;
  path = fs::absolute(path, error);
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

}  // namespace

Finding CheckFolder(const std::string& name, const std::string& folder, std::uint64_t least_free) {
  const fs::path place = Existing(folder);
  std::error_code error;
  if (!fs::is_directory(place, error)) {
    return Bad(name + " " + folder + ": " + place.string() + " is no folder", "another folder");
  }
  if (::access(place.c_str(), W_OK | X_OK) != 0) {
    return Bad(name + " " + folder + " cannot be written: " + std::strerror(errno),
               "another folder, or chown to the user of the server");
  }
  struct statvfs disk = {};
  if (::statvfs(place.c_str(), &disk) != 0) return Good(name + " " + folder + " can be written");
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free >= least_free) {
    return Good(name + " " + folder + " can be written, " + HumanBytes(free) + " free");
  }
  return Bad(name + " " + folder + ": the disk is full, " + HumanBytes(free) + " free of " +
                 HumanBytes(least_free) + " needed",
             "removing models (`penstock models`), or a folder on another disk");
}

Findings CheckFolders(const options::Values& values, const HubUse& hub, std::uint64_t weights) {
  Findings findings;
  if (hub.named) {
    findings.push_back(
        CheckFolder("hub cache", hub.cache, hub.complete ? kLeast : kLeastForModels));
  }
  if (const std::string& kept = values.GetString("weights-cache"); !kept.empty()) {
    // A file of an earlier start is used again or replaced.
    const std::uint64_t missing = weights - std::min(weights, FileBytes(kept));
    findings.push_back(CheckFolder("--weights-cache", kept, std::max(missing, kLeast)));
  }
  const std::string sockets = launcher::SocketBase(values.GetString("socket-dir"));
  findings.push_back(CheckFolder("socket folder", sockets, kLeast));
  const absl::Status prefix = launcher::CheckSocketPrefix(values.GetString("shard-uds-path"));
  if (!prefix.ok()) findings.push_back(Bad(Message(prefix), "chmod 700 on the folder"));
  return findings;
}

}  // namespace penstock::cli
