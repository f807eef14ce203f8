#include "common/private_file.h"

#include <sys/stat.h>

#include <cstdio>

namespace penstock {

std::string PrivateFileWarning(const std::string& where, const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || (info.st_mode & 077) == 0) return "";
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777));
  return where + ": users other than its owner may read it (mode " + mode + "; set it to 0600)";
}

}  // namespace penstock
