// Packed weights: where each value lies, and the cache of them on disk.
#include "shard/backend/cpu/weights/weight_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "shard/backend/cpu/formats/compressed_block.h"
#include "shard/backend/cpu/formats/transpose.h"
#include "tests/unit/shard/backend/cpu/named_source.h"
#include "tests/unit/shard/backend/cpu/random_model.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard::cpu {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr Shape kShape = {.name = "odd",
                          .hidden = 56,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 14,
                          .intermediate = 37,
                          .qkv_bias = true};

class PackedWeights : public testing::Test {
 protected:
  struct Made {
    std::vector<std::vector<std::byte>> matrices;
    std::vector<float> row;  // of the embedding
    std::uint64_t rows_read = 0;
  };

  Made Make(const std::string& identity, std::uint32_t threads = 2,
            std::uint64_t most = std::uint64_t{1} << 30, FormatId format = FormatId::kPlain) {
    const NamedSource source(weights_, identity);
    WorkerPool pool(threads);
    WeightStore::Options options;
    options.source = &source;
    options.cache_folder = folder_.path();
    options.cache_most = most;
    options.format = &FormatOf(format);
    const Kernels& kernels = *FindKernels(*ChooseIsa(), DType::kBFloat16);
    auto store = WeightStore::Create(built_.program, options, kernels, pool);
    EXPECT_TRUE(store.ok()) << store.status();
    store->AwaitCache();
    Made made;
    made.rows_read = source.rows_read;
    made.row.resize(kShape.hidden);
    store->EmbeddingRow(0, 3, made.row.data());
    for (const Op& op : built_.program.body) {
      const auto* linear = std::get_if<LinearOp>(&op);
      if (linear == nullptr) continue;
      const PackedMatrix& matrix = store->Matrix(linear->weight);
      made.matrices.emplace_back(matrix.data(), matrix.data() + matrix.Bytes());
    }
    return made;
  }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(folder_.path(), ec)) {
      files.push_back(entry.path());
    }
    return files;
  }

  TempFolder folder_;
  const BuiltProgram built_ = ProgramOf(kShape);
  const LoadedWeights weights_ = RandomWeights(built_.weights, DType::kBFloat16);
};

TEST_F(PackedWeights, ASecondStartReadsTheSameBytesWithoutTheModel) {
  const Made first = Make("model a");
  EXPECT_GT(first.rows_read, 0u);
  ASSERT_EQ(Files().size(), 1u);
  const Made second = Make("model a", 3);
  EXPECT_EQ(second.rows_read, 0u);
  EXPECT_EQ(second.matrices, first.matrices);
  EXPECT_EQ(second.row, first.row);
}

TEST_F(PackedWeights, AnotherModelHasAnotherFile) {
  Make("model a");
  EXPECT_GT(Make("model b").rows_read, 0u);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(PackedWeights, DamagedFilesAreReplaced) {
  const Made whole = Make("model a");
  const fs::path file = Files().at(0);
  const auto size = fs::file_size(file);
  const auto flip = [&file](std::uint64_t at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  };
  const std::vector<std::function<void()>> harms = {
      [&] { flip(0); },                          // the magic number
      [&] { flip(60); },                         // the identity
      [&] { flip(size - 1); },                   // the image
      [&] { flip(size / 2); },                   //
      [&] { fs::resize_file(file, size - 1); },  // torn
      [&] { fs::resize_file(file, 0); },
  };
  for (std::size_t i = 0; i < harms.size(); ++i) {
    SCOPED_TRACE("harm " + std::to_string(i));
    harms[i]();
    const Made again = Make("model a");
    EXPECT_GT(again.rows_read, 0u) << "a damaged file was taken";
    EXPECT_EQ(again.matrices, whole.matrices);
    EXPECT_EQ(again.row, whole.row);
    EXPECT_EQ(Make("model a").rows_read, 0u) << "the file was not written again";
  }
}

TEST_F(PackedWeights, EachFormatHasAFile) {
  constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;
  const Kernels& kernels = *FindKernels(*ChooseIsa(), DType::kBFloat16);
  std::size_t files = 0;
  for (const WeightFormat* format : AllFormats()) {
    if (kernels.formats[format->id()].gemm == nullptr) continue;
    const Made packed = Make("model a", 2, kPlenty, format->id());
    EXPECT_GT(packed.rows_read, 0u) << "weights of another format were used";
    EXPECT_EQ(Files().size(), ++files);
    const Made again = Make("model a", 1, kPlenty, format->id());
    EXPECT_EQ(again.rows_read, 0u);
    EXPECT_EQ(again.matrices, packed.matrices);
  }
}

TEST_F(PackedWeights, TheFolderKeepsWhatWasUsedLastWithinItsBound) {
  Make("model a");
  const std::uint64_t one = fs::file_size(Files().at(0));
  const fs::path first = Files().at(0);
  fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours(1));
  Make("model b", 2, 2 * one);
  EXPECT_EQ(Files().size(), 2u);
  Make("model c", 2, 2 * one);
  EXPECT_EQ(Files().size(), 2u);
  EXPECT_FALSE(fs::exists(first));
  Make("model d", 2, one - 1);  // does not fit at all: a warning
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(PackedWeights, AMissingFolderIsOnlyAWarning) {
  fs::remove(folder_.path());
  EXPECT_GT(Make("model a").rows_read, 0u);
}

TEST_F(PackedWeights, WhatIsNotARegularFileIsNotRead) {
  Make("model a");
  const fs::path file = Files().at(0);
  const std::vector<std::function<void()>> things = {
      [&] { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); },  // opening it could wait for a writer
      [&] { fs::create_directory(file); },
      [&] { fs::create_symlink("/dev/zero", file); },
  };
  for (std::size_t i = 0; i < things.size(); ++i) {
    SCOPED_TRACE("thing " + std::to_string(i));
    fs::remove(file);
    things[i]();
    testing::internal::CaptureStderr();
    EXPECT_GT(Make("model a").rows_read, 0u);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(file.string()));
  }
}

TEST_F(PackedWeights, AFileThatEverybodyMayWriteIsReplaced) {
  Make("model a");
  const fs::path file = Files().at(0);
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  testing::internal::CaptureStderr();
  EXPECT_GT(Make("model a").rows_read, 0u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(file.string() + " is writable by everybody"));
  EXPECT_EQ(Make("model a").rows_read, 0u) << "it was not written again";
}

TEST_F(PackedWeights, AFileOfAnotherUserIsReplaced) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  Make("model a");
  const fs::path file = Files().at(0);
  ASSERT_EQ(::chown(file.c_str(), 4321, 4321), 0);
  testing::internal::CaptureStderr();
  EXPECT_GT(Make("model a").rows_read, 0u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(file.string() + " belongs to user 4321"));
  EXPECT_EQ(Make("model a").rows_read, 0u) << "it was not written again";
}

TEST_F(PackedWeights, ASourceWithoutAnIdentityIsNotKept) {
  Make("");
  EXPECT_TRUE(Files().empty());
}

// The bytes of one weight in a matrix of `inner` columns, with its share of the scales.
double BytesOfAWeight(FormatId format, DType dtype, double inner) {
  switch (format) {
    case FormatId::kInt8:
      return 1 + sizeof(float) / inner;
    case FormatId::kInt4:
      return 0.5 + kInt4HeaderBytes / static_cast<double>(kIntegerGroup) + sizeof(float) / inner;
    case FormatId::kInt16:
      return 2 + sizeof(float) / static_cast<double>(kIntegerGroup);
    case FormatId::kCompressed:
      return 1.5 + sizeof(CompressedHeader) / (kPlainBlockBytes / 2.0);
    case FormatId::kPlain:
      break;
  }
  return static_cast<double>(DTypeBytes(dtype));
}

double BytesOfOverflow(FormatId format, double weights) {
  if (format != FormatId::kCompressed) return 0;
  const auto blocks = static_cast<std::size_t>(weights * 2 / kPlainBlockBytes);
  return static_cast<double>((blocks / 128 + 16) * kPlainBlockBytes);
}

// The sizes fill panels and groups. The embedding is stored twice where it is also the output
// projection in another layout. Vectors and the borders of pages take next to nothing.
void ExpectThePlannedMemory(bool tied, DType dtype, const WeightFormat& format) {
  SCOPED_TRACE(std::string(DTypeName(dtype)) + " as " + std::string(format.name()));
  const Shape shape = {.name = "even",
                       .hidden = 256,
                       .layers = 1,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 64,
                       .intermediate = 512,
                       .vocabulary = 4096,
                       .tied = tied};
  const BuiltProgram built = ProgramOf(shape);
  const LoadedWeights weights = RandomWeights(built.weights, dtype);
  const LoadedSource source(weights.views);
  WeightStore::Options options;
  options.source = &source;
  options.format = &format;
  const Kernels& kernels = *FindKernels(*ChooseIsa(), dtype);
  const std::uint64_t planned = WeightStore::BytesOf(built.program, options, kernels);
  WorkerPool pool(1);
  const auto store = WeightStore::Create(built.program, options, kernels, pool);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(planned, store->MemoryBytes());

  const double table = double{4096} * 256;
  double bytes = tied ? 0 : table * static_cast<double>(DTypeBytes(dtype));
  const double wide = table + 512 * 256 + 256 * 256 + 1024 * 256;
  bytes += wide * BytesOfAWeight(format.id(), dtype, 256);
  bytes += 256 * 512 * BytesOfAWeight(format.id(), dtype, 512);
  bytes += BytesOfOverflow(format.id(), wide + 256 * 512);
  EXPECT_NEAR(static_cast<double>(planned), bytes, 16384);  // scales take 16 to 50 KiB
}

TEST(WeightMemory, IsWhatWasPlannedForEveryFormat) {
  for (const bool tied : {false, true}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const Kernels& kernels = *FindKernels(*ChooseIsa(), dtype);
      for (const WeightFormat* format : AllFormats()) {
        if (kernels.formats[format->id()].gemm != nullptr) {
          ExpectThePlannedMemory(tied, dtype, *format);
        }
      }
    }
  }
}

// Element (column c, k) of a panel lies where formats.h says, for sizes that fill no panel.
template <class Element>
void ExpectPlaces(const MatrixShape& shape, const Layout& layout, DType dtype) {
  SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.inner) + ", pack " +
               std::to_string(layout.pack));
  std::vector<Element> weights(shape.rows * shape.inner);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<Element>(i % 30011 + 1);
  Kernels kernels{};
  kernels.layout = layout;
  kernels.weight = dtype;
  kernels.formats[FormatId::kPlain].pack = layout.pack;
  PackedMatrix matrix(shape, kernels, FormatOf(FormatId::kPlain));
  std::vector<std::byte> memory(matrix.Bytes(), std::byte{0xee});
  matrix.SetMemory(memory.data());
  Overflow none;
  ASSERT_TRUE(matrix.Pack(TensorView::Matrix(weights.data(), static_cast<std::int64_t>(shape.rows),
                                             static_cast<std::int64_t>(shape.inner), dtype),
                          {0, matrix.panels()}, none));
  const std::size_t n = layout.PanelColumns();
  const std::size_t padded = matrix.steps() * layout.pack;
  for (std::size_t c = 0; c < matrix.PaddedColumns(); ++c) {
    const std::size_t vector = c / layout.lanes;
    const std::size_t output = shape.gated ? vector / 2 * layout.lanes + c % layout.lanes : c;
    const bool real = output < matrix.outputs();
    const std::size_t row = shape.gated ? vector % 2 * matrix.outputs() + output : output;
    for (std::size_t k = 0; k < padded; ++k) {
      const std::size_t at = c / n * padded * n + k / layout.pack * n * layout.pack +
                             c % n * layout.pack + k % layout.pack;
      Element value;
      std::memcpy(&value, memory.data() + at * sizeof(Element), sizeof value);
      const Element expected =
          real && k < shape.inner ? weights[row * shape.inner + k] : Element(0);
      ASSERT_EQ(value, expected) << "column " << c << ", k " << k;
    }
  }
}

TEST(PackedMatrix, EveryElementLiesInItsPlace) {
  for (const MatrixShape& shape :
       {MatrixShape{1, 1, false}, MatrixShape{64, 32, false}, MatrixShape{67, 33, false},
        MatrixShape{200, 7, false}, MatrixShape{74, 45, true}, MatrixShape{128, 64, true}}) {
    ExpectPlaces<float>(shape, {8, 2, 1}, DType::kFloat32);
    ExpectPlaces<float>(shape, {16, 2, 1}, DType::kFloat32);
    ExpectPlaces<std::uint16_t>(shape, {8, 2, 2}, DType::kBFloat16);
    ExpectPlaces<std::uint16_t>(shape, {16, 2, 2}, DType::kBFloat16);
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
