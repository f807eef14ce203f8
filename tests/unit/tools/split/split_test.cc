#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/status.h"
#include "tools/split/split_options.h"
#include "tools/split/split_report.h"

namespace penstock::split {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

SplitOptions Options(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "penstock-split");
  const CommandLine line = ReadCommandLine(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(line.options.ok()) << Message(line.options.status());
  return line.options.ok() ? *line.options : SplitOptions{};
}

std::string Printed(const std::vector<const char*>& arguments) {
  const SplitOptions options = Options(arguments);
  return ToText(options, Split(options));
}

TEST(SplitTool, PrintsTheDocumentedRows) {
  const auto demo = [](const char* max_sparsity) {
    return Printed(
        {"--lengths", "38,33,24,22", "--max-splits", "4", "--max-sparsity", max_sparsity});
  };
  EXPECT_THAT(demo("0.01"), StartsWith("seq_lengths: [38, 33, 24, 22]\nmax_sparsity: 0.01\n"
                                       "num_splits: 4\npartition: [[1], [2], [3], [4]]\n"));
  EXPECT_THAT(demo("0.025"), HasSubstr("num_splits: 3\npartition: [[1], [2], [3, 4]]\n"));
  EXPECT_THAT(demo("0.1"), HasSubstr("num_splits: 2\npartition: [[1, 2], [3, 4]]\n"));
  EXPECT_THAT(demo("0.9"), HasSubstr("num_splits: 1\npartition: [[1, 2, 3, 4]]\n"));
  EXPECT_EQ(
      Split(Options({"--lengths", "38,33,24,22", "--max-splits", "3", "--max-sparsity", "0.01"}))
          .parts.size(),
      3u);
}

TEST(SplitTool, SplitsByCost) {
  const auto parts = [](const char* launch_cells) {
    return Split(
               Options({"--lengths", "300,50", "--split", "cost", "--launch-cells", launch_cells}))
        .parts.size();
  };
  EXPECT_EQ(parts("249"), 2u);  // a second sub-batch saves 250 cells
  EXPECT_EQ(parts("251"), 1u);
  EXPECT_THAT(Printed({"--lengths", "300,50", "--split", "cost", "--launch-cells", "7"}),
              HasSubstr("launch_cells: 7\nnum_splits: 2\n"));
}

TEST(SplitTool, PrintsBothMeasuresOfPadding) {
  const std::string one = Printed({"--lengths", "300,50", "--max-splits", "1"});
  EXPECT_THAT(one, HasSubstr("padding: 250\nsparsity: 0.417\npadding_per_token: 0.714\n"));
  const std::string two = Printed({"--lengths", "300,50"});
  EXPECT_THAT(two, HasSubstr("num_splits: 2\n"));
  EXPECT_THAT(two, HasSubstr("padding: 0\nsparsity: 0.000\npadding_per_token: 0.000\n"));
}

TEST(SplitTool, SweepsTheTenLengths) {
  const SplitOptions options =
      Options({"--lengths", "27,26,18,16,14,13,12,8,7,1", "--max-splits", "4"});
  const auto sweep = Sweep(options);
  ASSERT_EQ(sweep.size(), 4u);
  const std::uint64_t paddings[] = {128, 50, 26, 14};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(sweep[i].padding, paddings[i]) << i + 1;
  EXPECT_THAT(ToTable(sweep), HasSubstr("    3         26"));
}

TEST(SplitTool, PlotsWholeNumbersOfSubBatchesAndTheBound) {
  const SplitOptions options =
      Options({"--lengths", "27,26,18,16,14,13,12,8,7,1", "--max-splits", "4"});
  const std::string svg = ToSvg(options, Sweep(options));
  EXPECT_THAT(svg, StartsWith("<svg"));
  EXPECT_THAT(svg, HasSubstr(">--max-sparsity 0.33<"));
  EXPECT_THAT(svg, HasSubstr(">sub-batches of a step<"));
  EXPECT_THAT(svg, HasSubstr(">4<"));
  EXPECT_THAT(svg, Not(HasSubstr(">1.5<")));
}

TEST(SplitTool, PartsFollowTheRows) {
  EXPECT_EQ(Split(Options({"--lengths", "300,300,300,50"})).parts.size(), 1u);
  EXPECT_EQ(Split(Options({"--lengths", "300,50"})).parts.size(), 2u);
}

TEST(SplitTool, WritesJson) {
  const SplitReport report =
      Split(Options({"--lengths", "24,38,22,33", "--max-sparsity", "0.1", "--max-splits", "4"}));
  EXPECT_EQ(ToJson(report),
            "{\"parts\":[[2, 4], [1, 3]],\"lengths\":[[38, 33], [24, 22]],\"tokens\":117,"
            "\"padding\":7,\"sparsity\":0.056452,\"padding_per_token\":0.059829}\n");
}

TEST(SplitTool, FlagsNeedNoValue) {
  const SplitOptions options = Options({"--json", "--lengths", "300,50", "--sweep"});
  EXPECT_TRUE(options.json);
  EXPECT_TRUE(options.sweep);
}

TEST(SplitTool, NamesABadLength) {
  for (const auto& [list, place] :
       {std::pair("38,,3", "2"), std::pair(",3", "1"), std::pair("38,3,", "3")}) {
    const char* gap[] = {"penstock-split", "--lengths", list};
    EXPECT_THAT(Message(ReadCommandLine(3, gap).options.status()),
                HasSubstr(std::string("nothing as element ") + place));
  }
  const char* arguments[] = {"penstock-split", "--lengths", "38,0"};
  const CommandLine line = ReadCommandLine(3, arguments);
  ASSERT_FALSE(line.options.ok());
  EXPECT_THAT(Message(line.options.status()), HasSubstr("lengths"));
  EXPECT_EQ(line.exit_code, 2);
}

}  // namespace
}  // namespace penstock::split
