// The folder of one model in the Hugging Face cache, as huggingface_hub lays it out:
//
//   <cache>/models--org--name/refs/main                 the commit that a branch or tag stood at
//                             snapshots/<commit>/FILE   a link to ../../blobs/<etag>
//                             blobs/<etag>              the contents
//
// Files appear under their final names only when they are whole. Errors name the path.
// Threading: none; several processes agree through Lock.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/unique_fd.h"

namespace penstock::hub {

// "org/name" or "name", of the characters that the hub allows. Nothing else may become a path.
bool IsRepoId(std::string_view text);
bool IsCommit(std::string_view revision);
// A relative path without "..", for the files of a repository.
bool IsSafeFileName(std::string_view name);

class HubCache {
 public:
  // `repo` must be a repo id.
  HubCache(const std::string& cache, const std::string& repo);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path Snapshot(const std::string& commit) const;
  std::filesystem::path Blob(const std::string& etag) const;

  // The commit that `revision` stood at when it was last asked for; a commit is its own.
  std::optional<std::string> CommitOf(const std::string& revision) const;

  // Folders for writing; then one process at a time, until the lock goes. Waits for the lock.
  absl::StatusOr<launcher::UniqueFd> Lock();
  absl::Status WriteRef(const std::string& revision, const std::string& commit);
  // Lets `name` of the snapshot be the blob.
  absl::Status Link(const std::string& commit, const std::string& name, const std::string& etag);

 private:
  std::filesystem::path cache_;
  std::filesystem::path folder_;
};

}  // namespace penstock::hub
