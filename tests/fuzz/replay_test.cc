// Reads every committed seed of every target, whole and cut at a few places: what a fuzzer found
// once stays mended. The asan preset sees more.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/time.h"
#include "tests/fuzz/target.h"
#include "tests/unit/support/paths.h"

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCuts = 4;
constexpr std::chrono::seconds kSlow{10};  // a loaded machine under a sanitizer

std::string CorpusOf(std::string_view target) {
  return testing_support::SourcePath("tests/fuzz/corpus/" + std::string(target));
}

std::vector<fs::path> SeedsOf(std::string_view target) {
  std::vector<fs::path> seeds;
  for (const auto& entry : fs::directory_iterator(CorpusOf(target))) seeds.push_back(entry.path());
  return seeds;
}

std::string ReadSeed(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Replay : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { log::Configure("fuzz", log::Level::kError, log::Format::kText); }
  static void Read(std::string_view bytes) {
    // A heap block of the exact size, so that the sanitizer sees a read after its end.
    const std::vector<char> copy(bytes.begin(), bytes.end());
    const Time begin = SteadyNow();
    GetParam().read({copy.data(), copy.size()});
    EXPECT_LT(SteadyNow() - begin, kSlow);
  }
};

TEST_P(Replay, EverySeedIsReadWithoutHarm) {
  const std::vector<fs::path> seeds = SeedsOf(GetParam().name);
  ASSERT_FALSE(seeds.empty()) << "no seed in " << CorpusOf(GetParam().name);
  Read("");
  for (const fs::path& path : seeds) {
    SCOPED_TRACE(path.string());
    const std::string seed = ReadSeed(path);
    ASSERT_FALSE(seed.empty());
    Read(seed);
    for (std::size_t cut = 1; cut < kCuts; ++cut) {
      Read(std::string_view(seed).substr(0, seed.size() * cut / kCuts));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, testing::ValuesIn(Targets().begin(), Targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Corpus, EachFolderBelongsToATarget) {
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(CorpusOf("."))) {
    folders.insert(entry.path().filename().string());
  }
  std::set<std::string> targets;
  for (const Target& target : Targets()) targets.emplace(target.name);
  EXPECT_EQ(folders, targets);
}

}  // namespace
}  // namespace penstock::fuzz
