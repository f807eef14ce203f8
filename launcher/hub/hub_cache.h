// The folder of one model in the Hugging Face cache, in the layout of huggingface_hub:
//
//   <cache>/models--org--name/refs/main                 the commit of a branch or tag
//                             snapshots/<commit>/FILE   a link to ../../blobs/<etag>
//                             blobs/<etag>              the contents
//
// Files appear under their final names only when they are whole. Errors name the path.
// Lock excludes other processes.
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

  // The last known commit of `revision`. A commit is its own.
  std::optional<std::string> CommitOf(const std::string& revision) const;

  // Creates the folders and waits for the lock of the cache. Destroying the result unlocks it.
  absl::StatusOr<launcher::UniqueFd> Lock();
  absl::Status WriteRef(const std::string& revision, const std::string& commit);
  // Makes `name` of the snapshot a link to the blob.
  absl::Status Link(const std::string& commit, const std::string& name, const std::string& etag);

 private:
  std::filesystem::path cache_;
  std::filesystem::path folder_;
};

}  // namespace penstock::hub
