#include "launcher/model_source.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

TEST(NameOfFolderTest, IsThatOfTheFolderWhereThePathHasNone) {
  const TempFolder folder;
  folder.Write("models/story/config.json", "{}");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "models/story");
  EXPECT_EQ(NameOfFolder("."), "story");
  EXPECT_EQ(NameOfFolder("./"), "story");
  EXPECT_EQ(NameOfFolder(".."), "models");
  EXPECT_EQ(NameOfFolder("../story"), std::nullopt);
  EXPECT_EQ(NameOfFolder("/"), std::nullopt);
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace penstock::launcher
