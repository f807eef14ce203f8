#include "common/small_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace penstock {
namespace {

using Strings = SmallVector<std::string, 2>;

TEST(SmallVector, GrowsBeyondItsInlineRoom) {
  Strings strings;
  for (int i = 0; i < 5; ++i) strings.push_back(std::string(30, static_cast<char>('a' + i)));
  ASSERT_EQ(strings.size(), 5u);
  EXPECT_EQ(strings[0], std::string(30, 'a'));
  EXPECT_EQ(strings.back(), std::string(30, 'e'));
}

TEST(SmallVector, CopiesAndMovesInlineAndAllocated) {
  for (const std::size_t size : {0, 1, 2, 3, 9}) {
    Strings source;
    for (std::size_t i = 0; i < size; ++i) source.push_back(std::to_string(i));
    const Strings copy = source;
    EXPECT_EQ(copy, source);
    Strings moved = std::move(source);
    EXPECT_EQ(moved, copy);
    EXPECT_TRUE(source.empty());  // NOLINT(bugprone-use-after-move): empty by contract
    source.push_back("again");
    moved = std::move(source);
    EXPECT_EQ(moved, Strings{"again"});
    moved = copy;
    EXPECT_EQ(moved, copy);
  }
}

TEST(SmallVector, HoldsWhatCannotBeCopied) {
  SmallVector<std::unique_ptr<int>, 1> pointers;
  for (int i = 0; i < 3; ++i) pointers.emplace_back(std::make_unique<int>(i));
  const auto moved = std::move(pointers);
  EXPECT_EQ(*moved[2], 2);
}

// Every operation, against std::vector.
TEST(SmallVector, BehavesLikeAVector) {
  std::mt19937_64 random(11);
  Strings small;
  std::vector<std::string> vector;
  for (int i = 0; i < 20000; ++i) {
    const std::string text(random() % 40, 'x');
    switch (random() % 4) {
      case 0:
        small.resize(i % 5);
        vector.resize(i % 5);
        break;
      case 1: {
        const std::vector<std::string> values(random() % 4, text);
        small.assign(values.begin(), values.end());
        vector = values;
        break;
      }
      default:
        small.push_back(text);
        vector.push_back(text);
    }
    ASSERT_TRUE(std::equal(small.begin(), small.end(), vector.begin(), vector.end())) << i;
    if (vector.size() > 30) {
      small.clear();
      vector.clear();
    }
  }
}

}  // namespace
}  // namespace penstock
