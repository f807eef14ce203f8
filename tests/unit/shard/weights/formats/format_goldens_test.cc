// Quantised matrices have the bits that the library of their format gives (tests/oracle).
#include <absl/strings/escaping.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/weights/loader.h"
#include "tests/unit/shard/weights/stored_tensors.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::string Text(const json::value& value) { return std::string(value.as_string().c_str()); }

std::string Decoded(const json::value& value) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(Text(value), &bytes));
  return bytes;
}

struct Golden {
  std::string name;
  std::string quantization;
  std::vector<std::uint64_t> shape;
  std::vector<Stored> tensors;
  DType dtype = DType::kFloat32;
  std::string expanded;

  std::uint64_t Rows() const { return shape[shape.size() - 2]; }
  std::uint64_t Columns() const { return shape.back(); }
  std::uint64_t Stack() const { return shape.size() == 3 ? shape.front() : 0; }

  // These rows and columns of a matrix.
  std::string Piece(std::uint64_t matrix, Range rows, std::uint64_t step, Range columns) const {
    const std::uint64_t size = DTypeBytes(dtype);
    std::string piece;
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const std::uint64_t row = matrix * Rows() + rows.first + i * step;
      piece += expanded.substr((row * Columns() + columns.first) * size, columns.count * size);
    }
    return piece;
  }
};

Golden ReadGolden(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const json::value value = json::parse(text.str());
  Golden golden;
  golden.name = path.stem();
  golden.quantization = json::serialize(value.at("quantization_config"));
  golden.shape = json::value_to<std::vector<std::uint64_t>>(value.at("shape"));
  golden.dtype = ParseDType(Text(value.at("dtype"))).value();
  golden.expanded = Decoded(value.at("expanded"));
  for (const json::value& tensor : value.at("tensors").as_array()) {
    golden.tensors.push_back({Text(tensor.at("name")), Text(tensor.at("type")),
                              json::serialize(tensor.at("shape")), Decoded(tensor.at("data"))});
  }
  return golden;
}

std::vector<Golden> Goldens() {
  std::vector<Golden> goldens;
  for (const auto& entry :
       fs::directory_iterator(testing_support::SourcePath("tests/data/goldens/formats"))) {
    goldens.push_back(ReadGolden(entry.path()));
  }
  return goldens;
}

std::string Load(const Checkpoint& checkpoint, const Golden& golden, const WeightPart& part) {
  const WeightPlan plan = PlanOf(part, golden.quantization);
  EXPECT_EQ(Message(CheckParts(checkpoint, plan)), "") << golden.name;
  EXPECT_EQ(Message(CheckAllConsumed(checkpoint, plan)), "") << golden.name;
  auto weights = LoadWeights(checkpoint, plan, golden.dtype, nullptr);
  EXPECT_TRUE(weights.ok()) << golden.name << ": " << weights.status();
  if (!weights.ok()) return "";
  const TensorView& view = weights->views.front();
  return {static_cast<const char*>(view.data),
          static_cast<std::size_t>(view.Elements()) * DTypeBytes(golden.dtype)};
}

TEST(FormatGoldens, AllPiecesHaveTheBitsOfTheLibrary) {
  const std::vector<Golden> goldens = Goldens();
  EXPECT_GE(goldens.size(), 28u);
  for (const Golden& golden : goldens) {
    const TempFolder folder;
    const Checkpoint checkpoint = OpenStored(folder, golden.tensors);
    const std::uint64_t rows = golden.Rows(), columns = golden.Columns();
    const struct {
      Range rows;
      std::uint64_t step;
      Range columns;
    } pieces[] = {{{0, rows}, 1, {0, columns}},
                  {{1, rows - 2}, 1, {3, columns - 5}},
                  {{rows - 1, 1}, 1, {columns - 1, 1}},
                  {{1, (rows - 1) / 2}, 2, {2, columns - 2}}};
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(1, golden.Stack()); ++i) {
      for (const auto& piece : pieces) {
        WeightPart part{"m.weight", {rows, columns}, piece.rows, piece.columns, 0};
        part.row_step = piece.step;
        part.stack = golden.Stack();
        part.matrix = i;
        EXPECT_TRUE(Load(checkpoint, golden, part) ==
                    golden.Piece(i, piece.rows, piece.step, piece.columns))
            << golden.name << " rows from " << piece.rows.first << " columns from "
            << piece.columns.first;
      }
    }
  }
}

TEST(FormatGoldens, PackedIntegersOfOneScalePerRowAreGivenAsIntegers) {
  for (const Golden& golden : Goldens()) {
    if (!golden.name.starts_with("pack")) continue;
    const TempFolder folder;
    const Checkpoint checkpoint = OpenStored(folder, golden.tensors);
    const std::uint64_t rows = golden.Rows(), columns = golden.Columns();
    const WeightPart part{"m.weight", {rows, columns}, {1, rows - 1}, {0, columns}, 0};
    const bool whole_rows = !golden.name.ends_with("group");
    EXPECT_EQ(GivesInt4(checkpoint, PlanOf(part, golden.quantization)),
              golden.name.starts_with("pack4") && whole_rows)
        << golden.name;
  }
}

}  // namespace
}  // namespace penstock::shard
