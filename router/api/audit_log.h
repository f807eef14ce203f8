// --audit-log: one JSON line for each answered request, for accounts by tenant. It holds no text of
// prompts or answers. Lines are appended, and the file is opened again after SIGHUP, so that it may
// be moved away.
//
// Thread-safe. A write goes to the page cache of the system. If it fails, the log says so once, and
// further lines are tried.
#pragma once

#include <absl/status/status.h>

#include <fstream>
#include <mutex>
#include <string>

#include "router/http/access_log.h"

namespace penstock::router {

class AuditLog {
 public:
  // `path` is not empty. Errors name the option.
  absl::Status Open(const std::string& path);
  // Does not change the file if it cannot be opened.
  absl::Status OpenAgain();

  void Write(const AnswerRecord& answer);

 private:
  std::string path_;
  std::mutex mutex_;
  std::ofstream file_;   // under mutex_
  bool failed_ = false;  // the last write did; under mutex_
};

}  // namespace penstock::router
