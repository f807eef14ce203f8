// The safetensors reader with files of other writers, and with hostile files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "common/status.h"
#include "shard/weights/safetensors_file.h"
#include "shard/weights/safetensors_writer.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

std::string WithLength(const std::string& header) {
  std::string prefix(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>(header.size() >> (8 * i));
  return prefix + header;
}

std::string Error(const std::string& file_bytes) {
  TempFolder folder;
  folder.Write("m.safetensors", file_bytes);
  auto file = SafetensorsFile::Open(folder / "m.safetensors");
  return file.ok() ? "" : Message(file.status());
}

// A file whose data section has `data_bytes` bytes.
std::string HeaderError(const std::string& header, std::size_t data_bytes) {
  return Error(WithLength(header) + std::string(data_bytes, 'x'));
}

constexpr char kOneFloat[] = R"("a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";

std::string Object(const std::string& members) { return "{" + members + "}"; }

TEST(Safetensors, ReadsWhatTheWriterWrites) {
  TempFolder folder;
  const std::vector<TensorSpec> table = {{"x", DType::kFloat32, {2, 3}},
                                         {"scalar", DType::kBFloat16, {}},
                                         {"empty", DType::kFloat16, {0, 7}},
                                         {"y", DType::kFloat16, {5}}};
  std::string data(24 + 2 + 10, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i);
  SafetensorsWriter writer(folder / "m.safetensors", table);
  writer.Append(std::as_bytes(std::span(data)));
  ASSERT_TRUE(writer.Finish().ok());

  auto file = SafetensorsFile::Open(folder / "m.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->tensors().size(), 4u);
  for (const TensorInfo& tensor : (*file)->tensors()) {
    if (tensor.name != "y") continue;
    EXPECT_EQ(tensor.dtype, DType::kFloat16);
    EXPECT_EQ(tensor.shape, std::vector<std::uint64_t>{5});
    std::string read(tensor.bytes, '\0');
    ASSERT_TRUE((*file)->Read(tensor.offset, tensor.bytes, read.data()).ok());
    EXPECT_EQ(read, data.substr(26));
  }
}

TEST(Safetensors, WriterRefusesAWrongNumberOfBytes) {
  TempFolder folder;
  const std::string bytes(5, 'x');
  SafetensorsWriter more(folder / "more", {{"a", DType::kFloat32, {1}}});
  more.Append(std::as_bytes(std::span(bytes)));
  EXPECT_THAT(Message(more.Finish()), HasSubstr("more bytes"));
  SafetensorsWriter fewer(folder / "fewer", {{"a", DType::kFloat32, {1}}});
  EXPECT_THAT(Message(fewer.Finish()), HasSubstr("fewer bytes"));
  SafetensorsWriter nowhere(folder / "no/such/folder", {});
  EXPECT_THAT(Message(nowhere.Finish()), HasSubstr("cannot be written"));
}

TEST(Safetensors, AcceptsUnusualFilesThatAreLegal) {
  EXPECT_EQ(HeaderError("{}", 0), "");
  EXPECT_EQ(HeaderError(Object(kOneFloat) + "      ", 4), "");
  EXPECT_EQ(
      HeaderError(Object(R"("__metadata__": {"format": "pt"}, )" + std::string(kOneFloat)), 4), "");
  // A type that exists but is not loaded is no error until a model needs the tensor.
  EXPECT_EQ(HeaderError(R"({"i": {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]}})", 16),
            "");
  // Entries may be in any order.
  EXPECT_EQ(HeaderError(R"({"b": {"dtype": "U8", "shape": [3], "data_offsets": [4, 7]}, )" +
                            std::string(kOneFloat) + "}",
                        7),
            "");
}

TEST(Safetensors, NamesTheErrorOfAFile) {
  EXPECT_THAT(Error(std::string(8, '\xff')), HasSubstr("`header length` must be at most 0 bytes"));
  std::string huge = WithLength(std::string(16, ' '));
  huge[4] = 1;  // 4 GiB
  EXPECT_THAT(Error(huge), HasSubstr("Given: 4294967312"));
  EXPECT_THAT(HeaderError("[]", 0), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(HeaderError("", 0), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(HeaderError("{\"a\":", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(HeaderError("{\"\xff\": 1}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(HeaderError(Object(kOneFloat) + "x", 4), HasSubstr("text after"));
  EXPECT_THAT(HeaderError(Object(kOneFloat), 9), HasSubstr("end at byte 4"));
}

// A download that ended early leaves any part of the file.
TEST(Safetensors, AFileThatIsCutShortIsCalledSoWithBothSizes) {
  const std::string header = Object(
      std::string(kOneFloat) +
      R"(, "b": {"dtype": "U8", "shape": [9], "data_offsets": [4, 13]}, "__metadata__": {}})");
  const std::string whole = WithLength(header.substr(0, header.size() - 1)) + std::string(13, 'x');
  ASSERT_EQ(Error(whole), "");
  for (std::size_t size = whole.size() - 1; size >= 8; --size) {
    const std::uint64_t wanted = size < whole.size() - 13 ? whole.size() - 13 : whole.size();
    EXPECT_EQ(Error(whole.substr(0, size)),
              "m.safetensors: is cut short: the file has " + std::to_string(size) +
                  " bytes, its header calls for " + std::to_string(wanted) + "; fetch it again");
  }
  EXPECT_EQ(Error("abc"),
            "m.safetensors: is cut short: the file has 3 bytes, a header alone takes 8 or more; "
            "fetch it again");
  EXPECT_EQ(Error(""), "m.safetensors: is empty; fetch it again");
  EXPECT_THAT(HeaderError(R"({"a": {"dtype": "U8", "shape": [1152921504606846976], )"
                          R"("data_offsets": [0, 1152921504606846976]}})",
                          4),
              HasSubstr("its header calls for 115292150460684"));
}

TEST(Safetensors, NamesTheErrorOfAnEntry) {
  struct Case {
    const char* entry;
    const char* message;
  };
  const Case cases[] = {
      {R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]})", "does not have the 4 bytes"},
      {R"({"dtype": "F33", "shape": [1], "data_offsets": [0, 4]})", "unknown dtype \"F33\""},
      {R"({"dtype": "F32", "shape": [1]})", "lacks dtype, shape or two data_offsets"},
      {R"({"dtype": "F32", "shape": [1], "data_offsets": [0]})", "lacks dtype"},
      {R"({"dtype": "F32", "shape": [1], "data_offsets": [4, 0]})", "not ordered"},
      {R"({"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]})", "negative number"},
      {R"({"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]})", "fraction"},
      {R"({"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]})", "unexpected string"},
      {R"({"dtype": "F32", "shape": [[1]], "data_offsets": [0, 4]})", "unexpected array"},
      {R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "x": 1})", "unknown key \"x\""},
      {R"({"dtype": "F32", "dtype": "F32", "shape": [1], "data_offsets": [0, 4]})",
       "duplicate key \"dtype\""},
      {R"({"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 4]})",
       "beyond 64 bits"},
      {R"({"dtype": "F4", "shape": [7], "data_offsets": [0, 4]})", "does not have the 4 bytes"},
      {R"("text")", "unexpected string"},
      {"null", "unexpected null"},
      {"{\"dtype\": {}}", "unexpected object"},
  };
  for (const Case& test : cases) {
    const std::string error = HeaderError("{\"a\": " + std::string(test.entry) + "}", 4);
    EXPECT_THAT(error, HasSubstr(test.message)) << test.entry;
    EXPECT_THAT(error, HasSubstr("\"a\"")) << test.entry;
  }
  EXPECT_THAT(HeaderError(Object(std::string(kOneFloat) + ", " + kOneFloat), 4),
              HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(HeaderError(R"({"__metadata__": {"a": 1}})", 0), HasSubstr("unexpected number"));
  EXPECT_THAT(HeaderError(R"({"__metadata__": {"a": "1", "a": "2"}})", 0),
              HasSubstr("duplicate key"));
  EXPECT_THAT(HeaderError("{\"" + std::string(513, 'n') + "\": {}}", 0),
              HasSubstr("longer than 512 bytes"));
  EXPECT_THAT(HeaderError("{\"\": {}}", 0), HasSubstr("empty name"));
  EXPECT_THAT(HeaderError("{\"a\\nb\": {}}", 0), HasSubstr("\"a?b\" has a control character"));
}

TEST(Safetensors, RefusesGapsAndOverlaps) {
  const std::string second = R"(, "b": {"dtype": "F32", "shape": [1], "data_offsets": )";
  EXPECT_THAT(HeaderError(Object(kOneFloat + second + "[5, 9]}"), 9), HasSubstr("after a hole"));
  EXPECT_THAT(HeaderError(Object(kOneFloat + second + "[3, 7]}"), 7), HasSubstr("an overlap"));
  EXPECT_THAT(HeaderError(Object(kOneFloat + second + "[0, 4]}"), 4), HasSubstr("an overlap"));
}

TEST(Safetensors, RefusesDeepNestingBeforeTheStackOverflows) {
  EXPECT_NE(HeaderError("{\"a\": " + std::string(1 << 20, '['), 0), "");
}

// Random bytes give an error, or a table of which every tensor lies in the file.
TEST(Safetensors, ChangedBytesGiveNoTensorOutsideTheFile) {
  const std::string header =
      R"({"__metadata__": {"format": "pt"}, )" + std::string(kOneFloat) +
      R"(, "b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [4, 16]}})";
  const std::string alphabet = "{}[]\",:0129-eE.ab \\\xff";
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    std::string changed = header;
    for (std::uint32_t i = 0; i <= random() % 4; ++i) {
      changed[random() % changed.size()] = alphabet[random() % alphabet.size()];
    }
    const auto tensors = ParseSafetensorsHeader(changed, 8 + changed.size(), 16);
    if (!tensors.ok()) {
      ASSERT_NE(Message(tensors.status()), "") << "seed " << seed;
      continue;
    }
    for (const TensorInfo& tensor : *tensors) {
      ASSERT_LE(tensor.offset + tensor.bytes, 8 + changed.size() + 16) << "seed " << seed;
    }
  }
}

TEST(Safetensors, FollowsLinksOfAHubCacheOnly) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "blobs");
  folder.Write("blobs/0123", WithLength("{}"));
  folder.Write("elsewhere", WithLength("{}"));
  std::filesystem::create_symlink("blobs/0123", folder / "hub.safetensors");
  std::filesystem::create_symlink("elsewhere", folder / "link.safetensors");
  EXPECT_TRUE(SafetensorsFile::Open(folder / "hub.safetensors").ok());
  const auto refused = SafetensorsFile::Open(folder / "link.safetensors");
  EXPECT_THAT(Message(refused.status()), HasSubstr("link.safetensors: is a symbolic link"));
}

TEST(Safetensors, ReportsAFileThatShrinksWhileItIsRead) {
  TempFolder folder;
  folder.Write("m.safetensors", WithLength(Object(kOneFloat)) + "xxxx");
  auto file = SafetensorsFile::Open(folder / "m.safetensors");
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(folder / "m.safetensors", 10);
  char out[4];
  const absl::Status status = (*file)->Read((*file)->tensors()[0].offset, 4, out);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Message(status), HasSubstr("m.safetensors: ends at byte"));
}

// Opening a pipe blocks until another process writes to it.
TEST(Safetensors, OpeningAPipeDoesNotBlock) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "m.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(Message(SafetensorsFile::Open(folder / "m.safetensors").status()),
            "m.safetensors: is not a regular file");
}

// All files of a test have the same time, so that the time does not tell them apart.
std::string IdentityOf(const TempFolder& folder, const std::string& name,
                       const std::string& bytes) {
  folder.Write(name, bytes);
  std::filesystem::last_write_time(folder / name, std::filesystem::file_time_type());
  const auto file = SafetensorsFile::Open(folder / name);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? (*file)->Identity() : "";
}

TEST(Safetensors, TheIdentityDependsOnTheContent) {
  const TempFolder folder;
  const std::string header =
      WithLength(R"({"a": {"dtype": "F32", "shape": [10000], "data_offsets": [0, 40000]},)"
                 R"( "b": {"dtype": "F32", "shape": [1], "data_offsets": [40000, 40004]}})");
  const std::string data(40004, 'x');
  const std::string first = IdentityOf(folder, "m.safetensors", header + data);
  EXPECT_NE(first, "");
  EXPECT_EQ(IdentityOf(folder, "m.safetensors", header + data), first);
  EXPECT_NE(IdentityOf(folder, "other/m.safetensors", header + data), first);
  for (const std::size_t changed : {0u, 39999u, 40000u, 40003u}) {  // ends of both
    std::string other = data;
    other[changed] = 'y';
    EXPECT_NE(IdentityOf(folder, "m.safetensors", header + other), first) << changed;
  }
  // A tensor that was trained on differs in the pieces between, too.
  std::string inner = data;
  std::fill(inner.begin() + 4096, inner.begin() + 35000, 'y');
  EXPECT_NE(IdentityOf(folder, "m.safetensors", header + inner), first);
  std::string renamed = header;
  renamed[renamed.find("\"b\"") + 1] = 'c';
  EXPECT_NE(IdentityOf(folder, "m.safetensors", renamed + data), first);
}

}  // namespace
}  // namespace penstock::shard
