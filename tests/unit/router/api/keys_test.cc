#include "router/api/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ApiKeys KeysOfLines(std::string_view single, std::string_view lines) {
  auto keys = ApiKeys::Parse(single, lines, "keys");
  EXPECT_TRUE(keys.ok()) << keys.status();
  return keys.ok() ? *std::move(keys) : ApiKeys();
}

std::string WhyNot(std::string_view single, std::string_view lines) {
  return std::string(ApiKeys::Parse(single, lines, "keys").status().message());
}

TEST(ApiKeysTest, KeysAreComparedWhole) {
  const ApiKeys keys = KeysOfLines("abc", "");
  EXPECT_EQ(keys.NameOf("abc"), "default");
  for (const char* wrong : {"", "ab", "abd", "abcabc", "ABC", "abc "}) {
    EXPECT_EQ(keys.NameOf(wrong), std::nullopt) << wrong;
  }
}

TEST(ApiKeysTest, KeysHaveNames) {
  const ApiKeys keys =
      KeysOfLines("main:with:colons", "# comment\n\nalice: first \r\nbob-2:a:b:c\n");
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys.NameOf("main:with:colons"), "default");
  EXPECT_EQ(keys.NameOf("first"), "alice");
  EXPECT_EQ(keys.NameOf("a:b:c"), "bob-2");
  EXPECT_EQ(keys.NameOf("alice"), std::nullopt);
  EXPECT_TRUE(KeysOfLines("", "").empty());
}

TEST(ApiKeysTest, ErrorsNameTheLineAndNeverTheKey) {
  EXPECT_EQ(WhyNot("", "a:secret\nsecret"), "keys:2: must be name:key");
  EXPECT_EQ(WhyNot("", "a:"), "keys:1: the key after the first ':' must not be empty");
  EXPECT_THAT(WhyNot("", "a b:secret"), HasSubstr("keys:1: the name before"));
  std::string long_name(65, 'a');
  long_name.append(":secret");
  EXPECT_THAT(WhyNot("", long_name), HasSubstr("1 to 64"));
  EXPECT_EQ(WhyNot("", "a:secret\na:other"), "keys:2: the name a is given twice");
  EXPECT_EQ(WhyNot("", "a:secret\nb:secret"), "keys:2: a and b have the same key");
  EXPECT_EQ(WhyNot("secret", "b:secret"), "keys:1: default and b have the same key");
  EXPECT_THAT(WhyNot("", "a b:secret"), Not(HasSubstr("secret")));
}

TEST(ApiKeysTest, AKeyThatNoClientCanSendIsRefused) {
  // A secret made with `echo` ends with a line break.
  for (const char* key :
       {"secret\n", "secret\r\n", "sec\nret", " secret", "secret\t", "sec\x7fret"}) {
    EXPECT_THAT(WhyNot(key, ""), HasSubstr("--api-key ***: the key must hold no line break"))
        << key;
    EXPECT_THAT(WhyNot(key, ""), Not(HasSubstr("sec"))) << key;
  }
  EXPECT_THAT(WhyNot("", "a:sec\x01ret"), HasSubstr("keys:1: the key must hold no line break"));
  EXPECT_EQ(KeysOfLines("two words", "").NameOf("two words"), "default");
}

class KeyFileTest : public ::testing::Test {
 protected:
  ~KeyFileTest() override { std::filesystem::remove(path_); }

  void Write(std::string_view text) { std::ofstream(path_) << text; }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("penstock-keys-" + std::to_string(::getpid()));
};

TEST_F(KeyFileTest, IsReadWithItsOwnersKeys) {
  Write("alice:first\n");
  ::chmod(path_.c_str(), 0644);
  ::testing::internal::CaptureStderr();
  const auto keys = ApiKeys::Load("one", path_);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("(mode 0644; set it to 0600)"));
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->NameOf("first"), "alice");
  EXPECT_EQ(keys->NameOf("one"), "default");
}

TEST_F(KeyFileTest, MustBeThereAndHoldAKey) {
  EXPECT_THAT(std::string(ApiKeys::Load("one", path_).status().message()),
              HasSubstr(": cannot be read: No such file"));
  Write("# no key\n");
  EXPECT_THAT(std::string(ApiKeys::Load("", path_).status().message()),
              HasSubstr("must hold at least one name:key"));
}

TEST(KeyRingTest, NewKeysCountAtOnce) {
  KeyRing ring(KeysOfLines("", "a:old"));
  const auto before = ring.Get();
  ring.Set(KeysOfLines("", "a:new"));
  EXPECT_EQ(ring.Get()->NameOf("new"), "a");
  EXPECT_EQ(ring.Get()->NameOf("old"), std::nullopt);
  EXPECT_EQ(before->NameOf("old"), "a");
}

}  // namespace
}  // namespace penstock::router
