// Which objects a schema's expression takes: compared with what the schema says and with TGI's
// form.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <variant>
#include <vector>

#include "router/api/tgi/grammar/optional_members.h"
#include "router/api/tgi/grammar/schema_regex.h"

namespace penstock::router::tgi {
namespace {

using Keys = std::vector<int>;

std::string Name(int key) { return std::string("\"") + static_cast<char>('a' + key) + "\""; }

// Some keys in their order; half the time one more anywhere.
Keys RandomKeys(int count, std::mt19937& draw) {
  Keys keys;
  for (int key = 0; key < count; ++key) {
    if (draw() % 2 == 0) keys.push_back(key);
  }
  if (draw() % 2 == 0) keys.insert(keys.begin() + draw() % (keys.size() + 1), draw() % count);
  return keys;
}

// The expression for `count` properties. Bit i of `required`: property i is required.
std::string Expression(int count, unsigned required) {
  std::string properties;
  std::string names;
  for (int key = 0; key < count; ++key) {
    properties.append(key > 0 ? "," : "").append(Name(key)).append(R"(:{"type":"null"})");
    if ((required >> key & 1) != 0) names.append(names.empty() ? "" : ",").append(Name(key));
  }
  const std::string text = R"({"properties":{)" + properties + R"(},"required":[)" + names + "]}";
  json::Reader reader(text);
  json::Value schema;
  EXPECT_TRUE(json::ReadValue(reader, schema, "a value")) << text;
  return SchemaToRegex(schema).value();
}

// As TGI writes it when none is required.
std::string TgisExpression(int count) {
  const auto member = [](int key) { return "[ ]?" + Name(key) + "[ ]?:[ ]?null"; };
  std::string all;
  for (int first = 0; first < count; ++first) {
    if (first > 0) all += "|";
    for (int key = 0; key < first; ++key) all += "(" + member(key) + "[ ]?,)?";
    all += member(first);
    for (int key = first + 1; key < count; ++key) all += "([ ]?," + member(key) + ")?";
  }
  return "\\{(" + all + ")?[ ]?\\}";
}

// Every choice of some of `count` keys in every order.
void AddOrders(int count, Keys& chosen, std::vector<Keys>& all) {
  all.push_back(chosen);
  for (int key = 0; key < count; ++key) {
    if (std::find(chosen.begin(), chosen.end(), key) != chosen.end()) continue;
    chosen.push_back(key);
    AddOrders(count, chosen, all);
    chosen.pop_back();
  }
}

std::vector<Keys> Orders(int count) {
  Keys none;
  std::vector<Keys> all;
  AddOrders(count, none, all);
  return all;
}

bool IsMeant(const Keys& keys, unsigned required) {
  unsigned present = 0;
  for (const int key : keys) present |= 1u << key;
  return (present & required) == required && std::is_sorted(keys.begin(), keys.end());
}

enum class Comma { kRight, kInFront, kBehind, kTwice, kMissing };

// The object with blanks where some may be.
std::string Object(const Keys& keys, Comma comma, std::mt19937& draw) {
  const auto blank = [&draw] { return std::string(draw() % 4 == 0 ? " " : ""); };
  const std::string between = comma == Comma::kMissing ? "" : comma == Comma::kTwice ? ",," : ",";
  std::string text = comma == Comma::kInFront ? "{," : "{";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) text += blank() + between;
    text += blank() + Name(keys[i]) + blank() + ":" + blank() + "null";
  }
  if (comma == Comma::kBehind) text += ",";
  return text + blank() + "}";
}

constexpr Comma kWrong[] = {Comma::kInFront, Comma::kBehind, Comma::kTwice, Comma::kMissing};

void ExpectTheObjectsOf(int count, unsigned required) {
  const unsigned seed = std::random_device()();
  std::mt19937 draw(seed);
  const std::regex regex(Expression(count, required));
  const std::regex tgis(required == 0 ? TgisExpression(count) : Expression(count, required));
  for (const Keys& keys : Orders(count)) {
    const std::string text = Object(keys, Comma::kRight, draw);
    ASSERT_EQ(std::regex_match(text, regex), IsMeant(keys, required)) << text << " seed " << seed;
    ASSERT_EQ(std::regex_match(text, tgis), IsMeant(keys, required)) << text << " seed " << seed;
    const Comma comma = kWrong[draw() % std::size(kWrong)];
    const bool shows = comma == Comma::kInFront || comma == Comma::kBehind || keys.size() > 1;
    const std::string broken = Object(keys, comma, draw);
    ASSERT_FALSE(shows && std::regex_match(broken, regex)) << broken << " seed " << seed;
  }
}

TEST(TgiOptionalMembers, AnyOfThemInTheirOrderAsInTgi) {
  for (int count = 0; count <= 6; ++count) ExpectTheObjectsOf(count, 0);
}

TEST(TgiOptionalMembers, BesideRequiredOnes) {
  for (int count = 1; count <= 4; ++count) {
    for (unsigned required = 1; required < 1u << count; ++required) {
      ExpectTheObjectsOf(count, required);
    }
  }
}

// More than what is written in one block.
TEST(TgiOptionalMembers, ManyOfThemAfterARequiredOneAndWithoutIt) {
  const unsigned seed = std::random_device()();
  std::mt19937 draw(seed);
  for (const int count : {9, 16, 17, 26}) {
    for (const unsigned required : {0u, 1u, 2u, 1u << (count - 1)}) {
      const std::regex regex(Expression(count, required));
      for (int i = 0; i < 200; ++i) {
        const Keys keys = RandomKeys(count, draw);
        const std::string text = Object(keys, Comma::kRight, draw);
        const bool once = std::adjacent_find(keys.begin(), keys.end()) == keys.end();
        ASSERT_EQ(std::regex_match(text, regex), once && IsMeant(keys, required))
            << text << " of " << count << ", required " << required << ", seed " << seed;
      }
    }
  }
}

TEST(TgiOptionalMembers, MembersThatDependOnTheirPlaceKeepTgisForm) {
  const auto form = [](const std::string& first) {
    return AnyInOrder({first, "z"}, ",", 1000).value();
  };
  for (const char* part : {"x|y", "(x)|(y)", "x)|(y", "(?i:x)", "(?<n>x)", "[(]x|y", "[^]]|y",
                           "[[|]x]|y", "[[|]|]", R"(\[x|y)"}) {
    const std::string x = part;
    EXPECT_EQ(form(x), x + "(,z)?|(" + x + ",)?z");
  }
  for (const char* part : {"(x|y)", "(?:x|y)", "[)|]", "[^]|]", R"([\]|]\|\(x\))"}) {
    const std::string x = part;
    EXPECT_EQ(form(x), "(" + x + ")(,z)?|z");
  }
}

TEST(TgiOptionalMembers, NothingIsLongerThanAllowed) {
  const std::vector<std::string> closed(100, "x"), open(100, "x|y");
  EXPECT_EQ(AnyInOrder(closed, ",", 100), std::nullopt);
  EXPECT_EQ(AnyInOrder(open, ",", 10'000), std::nullopt);
  EXPECT_TRUE(AnyInOrder(closed, ",", 10'000));
}

}  // namespace
}  // namespace penstock::router::tgi
