// Packed weights that were kept for another model are not taken for this one, though its files have
// the same names, sizes and times, nor those of the same file before bytes of it were changed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;

class KeptWeights : public testing::Test {
 protected:
  // The demo model; of the other one the signs of one matrix are turned.
  void MakeModel(const std::string& folder, bool other) const {
    fs::create_directories(folder);
    for (const char* name : {"config.json", "generation_config.json", "model.safetensors"}) {
      fs::copy_file(fs::path(testing_support::SourcePath("demo/model")) / name,
                    fs::path(folder) / name, fs::copy_options::overwrite_existing);
    }
    const fs::path file = fs::path(folder) / "model.safetensors";
    if (other) TurnSigns(file);
    fs::last_write_time(file, time_);
  }

  // Fills the cache as the server does.
  void Keep(const std::string& folder) const {
    auto model = Model::Open({folder, DType::kBFloat16, Device(), 0, 1});
    ASSERT_TRUE(model.ok()) << model.status();
    const CheckpointSource source(model->checkpoint, model->weight_plan, model->dtype);
    cpu::WorkerPool pool(1);
    const cpu::WeightStore::Options options{.source = &source,
                                            .format = &cpu::FormatOf(cpu::FormatId::kPlain),
                                            .progress = nullptr,
                                            .cache_folder = cache_,
                                            .cache_most = kPlenty};
    const cpu::Kernels& kernels = *cpu::FindKernels(*cpu::ChooseIsa(), model->dtype);
    auto store = cpu::WeightStore::Create(model->program, options, kernels, pool);
    ASSERT_TRUE(store.ok()) << store.status();
    store->AwaitCache();
    ASSERT_GT(Files(), 0);
  }

  static std::vector<float> Logits(const std::string& folder, const std::string& cache) {
    RunnerOptions options;
    options.folder = folder;
    options.dtype = DType::kBFloat16;
    options.make = [&cache](const Model& model, const LoadedWeights&) {
      const CheckpointSource source(model.checkpoint, model.weight_plan, model.dtype);
      CpuOptions cpu{.program = model.program, .weights = {}, .dtype = model.dtype};
      cpu.weight_format = "plain";
      cpu.source = &source;
      cpu.weights_cache = cache;
      cpu.weights_cache_bytes = kPlenty;
      return MakeCpuBackend(std::move(cpu));
    };
    const auto runner = ModelRunner::Open(options);
    return runner == nullptr ? std::vector<float>() : runner->Prefill(0, {1, 50, 700, 9}, 4);
  }

  const TempFolder folder_;
  const TempFolder cache_folder_;
  const std::string cache_ = cache_folder_.path();

  // Turns the signs of the whole matrix, or of bytes [first, first + count). Keeps the file's time.
  void TurnSigns(const fs::path& path, std::size_t first = 0, std::size_t count = SIZE_MAX) const {
    const auto file = SafetensorsFile::Open(path.string());
    ASSERT_TRUE(file.ok()) << file.status();
    for (const TensorInfo& tensor : (*file)->tensors()) {
      if (tensor.name != "model.layers.3.mlp.down_proj.weight") continue;
      const std::size_t size = std::min<std::size_t>(count, tensor.bytes - first);
      std::string bytes(size, '\0');
      ASSERT_TRUE((*file)->Read(tensor.offset + first, size, bytes.data()).ok());
      for (std::size_t i = 1; i < bytes.size(); i += 2) {
        bytes[i] = static_cast<char>(bytes[i] ^ 0x80);
      }
      std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(static_cast<std::streamoff>(tensor.offset + first));
      stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    fs::last_write_time(path, time_);
  }

  std::ptrdiff_t Files() const {
    return std::distance(fs::directory_iterator(cache_), fs::directory_iterator());
  }

  // Whether the next start takes the kept weights, by its log.
  static bool TakesKept(const std::string& folder, const std::string& cache) {
    testing::internal::CaptureStderr();
    Logits(folder, cache);
    return testing::internal::GetCapturedStderr().find(" from " + cache) != std::string::npos;
  }

 private:
  const fs::file_time_type time_ = fs::file_time_type::clock::now() - std::chrono::hours(1);
};

TEST_F(KeptWeights, OfAModelInAnotherFolderAreNotUsed) {
  MakeModel(folder_ / "a", false);
  MakeModel(folder_ / "b", true);
  const std::vector<float> expected = Logits(folder_ / "b", "");
  Keep(folder_ / "a");
  EXPECT_EQ(Logits(folder_ / "b", cache_), expected);
  const std::vector<float> first = Logits(folder_ / "a", cache_);
  EXPECT_EQ(first, Logits(folder_ / "a", ""));
  EXPECT_NE(first, expected) << "the models are the same";
}

TEST_F(KeptWeights, OfTheFormerModelInThisFolderAreNotUsed) {
  MakeModel(folder_ / "model", false);
  Keep(folder_ / "model");
  MakeModel(folder_ / "model", true);
  EXPECT_EQ(Logits(folder_ / "model", cache_), Logits(folder_ / "model", ""));
}

// Between the pieces that are looked at, of a file whose time is set back: what remains is the time
// at which the system noted it.
TEST_F(KeptWeights, OfAFileWithAChangedRowAreReplaced) {
  MakeModel(folder_ / "model", false);
  Keep(folder_ / "model");
  const std::vector<float> before = Logits(folder_ / "model", "");
  const std::string file = folder_ / "model/model.safetensors";
  const std::string identity = (*SafetensorsFile::Open(file))->Identity();
  TurnSigns(file, 49'152, 768);
  ASSERT_EQ((*SafetensorsFile::Open(file))->Identity(), identity) << "these bytes are looked at";
  const std::vector<float> after = Logits(folder_ / "model", "");
  ASSERT_NE(after, before);
  EXPECT_EQ(Logits(folder_ / "model", cache_), after);
  Keep(folder_ / "model");
  EXPECT_TRUE(TakesKept(folder_ / "model", cache_)) << "they were not written again";
  EXPECT_EQ(Files(), 1) << "the old ones stay";
}

// A mode, an owner, a link: the system notes those as well. It costs one packing.
TEST_F(KeptWeights, OfAFileWithAnotherModeAreReplacedOnce) {
  MakeModel(folder_ / "model", false);
  Keep(folder_ / "model");
  ASSERT_EQ(::chmod((folder_ / "model/model.safetensors").c_str(), 0400), 0);
  EXPECT_FALSE(TakesKept(folder_ / "model", cache_));
  Keep(folder_ / "model");
  EXPECT_TRUE(TakesKept(folder_ / "model", cache_));
  EXPECT_EQ(Files(), 1);
}

TEST_F(KeptWeights, OfTheSameFilesAreUsed) {
  MakeModel(folder_ / "model", false);
  Keep(folder_ / "model");
  testing::internal::CaptureStderr();
  const std::vector<float> logits = Logits(folder_ / "model", cache_);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(" from " + cache_), std::string::npos);
  EXPECT_EQ(logits, Logits(folder_ / "model", ""));
}

}  // namespace
}  // namespace penstock::shard
