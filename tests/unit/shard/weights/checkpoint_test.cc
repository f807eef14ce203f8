// A model folder as a table of tensors: one file, several files with an index, and broken ones.
#include "shard/weights/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "shard/weights/safetensors_writer.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

// Each tensor is one float, its value the length of its name.
void WriteTensors(const TempFolder& folder, const std::string& file,
                  const std::vector<std::string>& names) {
  std::vector<TensorSpec> table;
  std::vector<float> data;
  for (const std::string& name : names) {
    table.push_back({name, DType::kFloat32, {1}});
    data.push_back(static_cast<float>(name.size()));
  }
  SafetensorsWriter writer(folder / file, table);
  writer.Append(std::as_bytes(std::span(data)));
  ASSERT_TRUE(writer.Finish().ok());
}

void WriteIndex(const TempFolder& folder, const std::string& map,
                const std::string& metadata = "") {
  folder.Write("model.safetensors.index.json", "{" + metadata + R"("weight_map": {)" + map + "}}");
}

std::string OpenError(const TempFolder& folder) {
  auto checkpoint = Checkpoint::Open(folder.path());
  return checkpoint.ok() ? "" : Message(checkpoint.status());
}

class TwoFiles : public testing::Test {
 protected:
  void SetUp() override {
    WriteTensors(folder_, "a.safetensors", {"one", "two"});
    WriteTensors(folder_, "b.safetensors", {"three"});
  }
  static constexpr char kMap[] =
      R"("one": "a.safetensors", "two": "a.safetensors", "three": "b.safetensors")";
  TempFolder folder_;
};

TEST_F(TwoFiles, AreOneTable) {
  WriteIndex(folder_, kMap, R"("metadata": {"total_size": 12},)");
  auto checkpoint = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->total_bytes(), 12u);
  const CheckpointTensor* three = checkpoint->Find("three");
  ASSERT_NE(three, nullptr);
  EXPECT_EQ(checkpoint->FileName(*three), "b.safetensors");
  float value = 0;
  ASSERT_TRUE(checkpoint->Read(*three, 0, 4, &value).ok());
  EXPECT_EQ(value, 5.0f);
  EXPECT_EQ(checkpoint->Find("four"), nullptr);
}

TEST_F(TwoFiles, TheIndexIsUsedRatherThanASingleFile) {
  WriteTensors(folder_, "model.safetensors", {"other"});
  WriteIndex(folder_, kMap);
  auto checkpoint = Checkpoint::Open(folder_.path());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(checkpoint->Find("other"), nullptr);
}

TEST_F(TwoFiles, MustAgreeWithTheIndex) {
  WriteIndex(folder_, R"("one": "a.safetensors", "three": "b.safetensors")");
  EXPECT_THAT(OpenError(folder_), HasSubstr("a.safetensors: holds tensor two, which"));
  WriteIndex(folder_, std::string(kMap) + R"(, "four": "b.safetensors")");
  EXPECT_THAT(OpenError(folder_), HasSubstr("places tensor four in b.safetensors"));
  WriteIndex(folder_,
             R"("one": "a.safetensors", "two": "b.safetensors", "three": "b.safetensors")");
  EXPECT_THAT(OpenError(folder_),
              HasSubstr("tensor two, which model.safetensors.index.json places"));
  WriteIndex(folder_, kMap, R"("metadata": {"total_size": 13},)");
  EXPECT_THAT(OpenError(folder_),
              HasSubstr("`metadata.total_size` must be the sum of the tensors"));
  WriteIndex(folder_, std::string(kMap) + R"(, "x": "gone.safetensors")");
  EXPECT_THAT(OpenError(folder_),
              HasSubstr("gone.safetensors: cannot be opened: No such file or directory; "
                        "model.safetensors.index.json names it"));
}

TEST_F(TwoFiles, MustNotHoldATensorTwice) {
  WriteTensors(folder_, "b.safetensors", {"one"});
  WriteIndex(folder_, R"("one": "a.safetensors", "two": "a.safetensors", "x": "b.safetensors")");
  EXPECT_THAT(OpenError(folder_), HasSubstr("tensor one is in another file too"));
}

TEST_F(TwoFiles, FileNamesOfAnIndexStayInTheFolder) {
  for (const char* name : {"../a.safetensors", "/etc/a.safetensors", "x/a.safetensors",
                           ".safetensors", "..safetensors", "a.bin", "a b.safetensors", ""}) {
    WriteIndex(folder_, std::string(R"("one": ")") + name + "\"");
    EXPECT_THAT(OpenError(folder_), HasSubstr("a plain file name that ends in .safetensors"))
        << name;
  }
  WriteIndex(folder_, R"("one": 5)");
  EXPECT_THAT(OpenError(folder_), HasSubstr("Given: 5"));
  folder_.Write("model.safetensors.index.json", "{\"weight_map\": []}");
  EXPECT_THAT(OpenError(folder_), HasSubstr("`weight_map` must be an object"));
  folder_.Write("model.safetensors.index.json", "{");
  EXPECT_THAT(OpenError(folder_), HasSubstr("model.safetensors.index.json: is not valid JSON"));
}

TEST(CheckpointFolder, NamesTheMissingFile) {
  TempFolder folder;
  EXPECT_THAT(OpenError(folder), HasSubstr("has neither model.safetensors nor"));
  auto absent = Checkpoint::Open(folder / "absent");
  EXPECT_THAT(Message(absent.status()), HasSubstr("absent: is not a folder of a model"));
}

}  // namespace
}  // namespace penstock::shard
