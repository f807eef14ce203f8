#include "launcher/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace penstock::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCommitLength = 40;
constexpr std::size_t kLongestRepoId = 200;

absl::Status FileError(const fs::path& path, const std::error_code& error) {
  return absl::UnavailableError(path.string() + ": " + error.message());
}

absl::Status MakeFolders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? FileError(path, error) : absl::OkStatus();
}

bool IsNamePart(std::string_view part) {
  const bool allowed = std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  return allowed && !part.empty() && part.front() != '.' && part.front() != '-' &&
         part.back() != '.' && part.find("--") == std::string_view::npos &&
         part.find("..") == std::string_view::npos;
}

std::string FolderName(const std::string& repo) {
  const std::size_t slash = repo.find('/');
  if (slash == std::string::npos) return "models--" + repo;
  return "models--" + repo.substr(0, slash) + "--" + repo.substr(slash + 1);
}

}  // namespace

bool IsRepoId(std::string_view text) {
  if (text.size() > kLongestRepoId) return false;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsNamePart(text);
  return IsNamePart(text.substr(0, slash)) && IsNamePart(text.substr(slash + 1));
}

bool IsCommit(std::string_view revision) {
  return revision.size() == kCommitLength &&
         std::all_of(revision.begin(), revision.end(), [](unsigned char c) {
           return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
         });
}

bool IsSafeFileName(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\0') != std::string_view::npos) {
    return false;
  }
  const fs::path path(name);
  return std::none_of(path.begin(), path.end(),
                      [](const fs::path& part) { return part == ".." || part.empty(); });
}

HubCache::HubCache(const std::string& cache, const std::string& repo)
    : cache_(cache), folder_(cache_ / FolderName(repo)) {}

fs::path HubCache::Snapshot(const std::string& commit) const {
  return folder_ / "snapshots" / commit;
}

fs::path HubCache::Blob(const std::string& etag) const { return folder_ / "blobs" / etag; }

std::optional<std::string> HubCache::CommitOf(const std::string& revision) const {
  if (IsCommit(revision)) return revision;
  if (!IsSafeFileName(revision)) return std::nullopt;
  std::ifstream file(folder_ / "refs" / revision);
  std::string commit;
  file >> commit;
  if (!IsCommit(commit)) return std::nullopt;
  return commit;
}

absl::StatusOr<launcher::UniqueFd> HubCache::Lock() {
  const fs::path locks = cache_ / ".locks" / folder_.filename();
  for (const fs::path& path : {folder_ / "refs", folder_ / "blobs", folder_ / "snapshots", locks}) {
    const absl::Status made = MakeFolders(path);
    if (!made.ok()) return made;
  }
  const fs::path path = locks / "penstock.lock";
  launcher::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.open() || ::flock(lock.get(), LOCK_EX) != 0) {
    return FileError(path, std::error_code(errno, std::generic_category()));
  }
  return lock;
}

absl::Status HubCache::WriteRef(const std::string& revision, const std::string& commit) {
  if (IsCommit(revision)) return absl::OkStatus();
  const fs::path path = folder_ / "refs" / revision;
  const absl::Status made = MakeFolders(path.parent_path());
  if (!made.ok()) return made;
  std::ofstream file(path, std::ios::trunc);
  file << commit;
  file.close();
  if (file.good()) return absl::OkStatus();
  return FileError(path, std::make_error_code(std::errc::io_error));
}

absl::Status HubCache::Link(const std::string& commit, const std::string& name,
                            const std::string& etag) {
  const fs::path path = Snapshot(commit) / name;
  const absl::Status made = MakeFolders(path.parent_path());
  if (!made.ok()) return made;
  const fs::path blob = fs::relative(Blob(etag), path.parent_path());
  // rename replaces an existing link atomically.
  const fs::path fresh = path.string() + ".new";
  std::error_code error;
  fs::remove(fresh, error);
  fs::create_symlink(blob, fresh, error);
  if (!error) fs::rename(fresh, path, error);
  return error ? FileError(path, error) : absl::OkStatus();
}

}  // namespace penstock::hub
