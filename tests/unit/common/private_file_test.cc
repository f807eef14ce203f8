#include "common/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/support/temp_folder.h"

namespace penstock {
namespace {

TEST(PrivateFileTest, WarnsOfAFileThatOthersMayRead) {
  const TempFolder folder;
  const std::string path = folder / "server.key";
  folder.Write("server.key", "secret");
  ::chmod(path.c_str(), 0644);
  EXPECT_EQ(PrivateFileWarning("--tls-key k", path),
            "--tls-key k: users other than its owner may read it (mode 0644; set it to 0600)");
  ::chmod(path.c_str(), 0640);
  EXPECT_NE(PrivateFileWarning("--tls-key k", path), "");
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(PrivateFileWarning("--tls-key k", path), "");
  EXPECT_EQ(PrivateFileWarning("--tls-key k", folder / "absent"), "");
}

}  // namespace
}  // namespace penstock
