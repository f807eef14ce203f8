#include "shard/sampling/grammar_masks.h"

#include <gtest/gtest.h>

#include "tests/unit/shard/sampling/gated_grammars.h"

namespace penstock::shard {
namespace {

constexpr SlotId kOne{0};
constexpr SlotId kTwo{1};
constexpr SlotId kThree{2};

class GrammarMasksTest : public testing::Test {
 protected:
  bool Comes(SlotId slot) { return masks_.AnyReady({&slot, 1}, SteadyNow() + kTestTimeout); }
  bool IsThere(SlotId slot) { return masks_.AnyReady({&slot, 1}, Time{}); }
  bool Allows(SlotId slot, char byte) {
    const auto row = masks_.Get(slot);
    EXPECT_TRUE(row.ok()) << row.status();
    return row.ok() && Contains(row->allowed, byte);
  }

  GatedGrammars grammars_;
  GrammarMasks masks_{3, grammars_.cache()};
};

TEST_F(GrammarMasksTest, AMaskIsReadyOnceItsGrammarIsCompiled) {
  masks_.Start(kOne, GatedGrammars::Regex("[a-c]+"), {});
  EXPECT_FALSE(IsThere(kOne));
  grammars_.Open();
  ASSERT_TRUE(Comes(kOne));
  EXPECT_TRUE(Allows(kOne, 'b'));
  EXPECT_FALSE(Allows(kOne, 'd'));
}

TEST(GrammarMasks, CompilingDoesNotDelayOtherMasks) {
  GatedGrammars grammars;
  grammars.Open();
  const GrammarSpec known = GatedGrammars::Regex("ab*");
  ASSERT_TRUE(grammars.cache().Get(known).ok());
  std::promise<void> gate;
  grammars.cache().OnCompileForTest([open = gate.get_future().share()] {
    EXPECT_EQ(open.wait_for(kTestTimeout), std::future_status::ready);
  });
  GrammarMasks masks(2, grammars.cache());
  masks.Start(kOne, GatedGrammars::Regex("x"), {});
  masks.Start(kTwo, known, {});
  ASSERT_TRUE(masks.AnyReady({&kTwo, 1}, SteadyNow() + kTestTimeout));
  masks.Advance(kTwo, 'a');
  ASSERT_TRUE(masks.AnyReady({&kTwo, 1}, SteadyNow() + kTestTimeout));
  const auto row = masks.Get(kTwo);
  ASSERT_TRUE(row.ok());
  EXPECT_TRUE(Contains(row->allowed, 'b'));
  EXPECT_FALSE(masks.AnyReady({&kOne, 1}, Time{}));
  gate.set_value();
}

TEST_F(GrammarMasksTest, GrammarsOfEndedSequencesAreNotCompiled) {
  masks_.Start(kOne, GatedGrammars::Regex("a"), {});
  masks_.Start(kTwo, GatedGrammars::Regex("b"), {});
  masks_.Start(kThree, GatedGrammars::Regex("c"), {});
  masks_.Start(kTwo, GatedGrammars::Regex("a"), {});  // in its place
  masks_.End(kThree);
  grammars_.Open();
  ASSERT_TRUE(Comes(kOne));
  ASSERT_TRUE(Comes(kTwo));
  EXPECT_TRUE(Allows(kTwo, 'a'));
  EXPECT_EQ(grammars_.compiled(), 1);
}

TEST_F(GrammarMasksTest, AnInvalidGrammarFailsWithItsOwnError) {
  grammars_.Open();
  masks_.Start(kOne, GatedGrammars::Regex("("), {});
  ASSERT_TRUE(Comes(kOne));
  const auto expected = grammars_.cache().Get(GatedGrammars::Regex("(")).status();
  EXPECT_EQ(masks_.Get(kOne).status(), expected);
}

TEST_F(GrammarMasksTest, OutputOfEarlierStartsCounts) {
  grammars_.Open();
  masks_.Start(kOne, GatedGrammars::Regex("xyz"), std::vector<TokenId>{'x', 'y'});
  ASSERT_TRUE(Comes(kOne));
  EXPECT_TRUE(Allows(kOne, 'z'));
}

}  // namespace
}  // namespace penstock::shard
