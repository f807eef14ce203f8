#include "router/json/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/error.hpp>
#include <boost/json/parse.hpp>
#include <random>
#include <string>
#include <vector>

#include "router/json/fields.h"
#include "router/json/value.h"

namespace penstock::router::json {
namespace {

struct Inner {
  std::optional<std::uint64_t> best_of;
  std::optional<std::int32_t> top_k;
  std::optional<float> temperature;
  bool details = false;
  std::vector<std::string> stop;
};
struct Outer {
  std::string inputs;
  Inner parameters;
  Raw extra;
};

constexpr auto kInner = std::array{
    MakeField<&Inner::best_of>("best_of", "usize"),
    MakeField<&Inner::top_k>("top_k", "i32"),
    MakeField<&Inner::temperature>("temperature", "f32"),
    MakeField<&Inner::details>("details", "a boolean"),
    MakeField<&Inner::stop>("stop", "a sequence"),
};

bool ReadValue(Reader& reader, Inner& out, std::string_view expected) {
  return ReadObject<Inner>(reader, kInner, out, expected);
}

constexpr auto kOuter = std::array{
    MakeField<&Outer::inputs>("inputs", "a string", true),
    MakeField<&Outer::parameters>("parameters", "struct Parameters"),
    MakeField<&Outer::extra>("extra", "a value"),
};

// The error's text, or "ok".
std::string Parse(std::string_view text, Outer& out, Limits limits = {}) {
  Reader reader(text, limits);
  ReadObject<Outer>(reader, kOuter, out, "struct Outer");
  if (reader.ok()) return "ok";
  return (reader.error().kind == Error::Kind::kSyntax ? "syntax " : "data ") +
         reader.error().Text();
}

std::string Parse(std::string_view text) {
  Outer out;
  return Parse(text, out);
}

TEST(JsonReader, ReadsWhatTheTableNamesAndSkipsTheRest) {
  Outer out;
  EXPECT_EQ(Parse(R"( {"inputs":"a\u00e4\ud83d\ude00\n","unknown":[{"x":[1,2,{}]},null,-1.5e3],
                    "parameters":{"top_k":-3,"temperature":1,"best_of":null,"details":true,
                    "stop":["x","y"],"other":{}},"extra": {"b": 1.0, "a": [ ] } } trailing)",
                  out),
            "ok");
  EXPECT_EQ(out.inputs, "a\xc3\xa4\xf0\x9f\x98\x80\n");
  EXPECT_EQ(out.parameters.top_k, -3);
  EXPECT_EQ(out.parameters.temperature, 1.0f);
  EXPECT_EQ(out.parameters.best_of, std::nullopt);
  EXPECT_TRUE(out.parameters.details);
  EXPECT_EQ(out.parameters.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(out.extra.text, R"({"b": 1.0, "a": [ ] })");  // order and spelling kept
}

TEST(JsonReader, RecordsUnknownKeys) {
  Reader reader(R"({"inputs":"a","x":1,"parameters":{"y":2,"z":3}})");
  Outer out;
  ASSERT_TRUE(ReadObject<Outer>(reader, kOuter, out, "struct Outer"));
  EXPECT_EQ(reader.unknown_keys().count, 3U);
  EXPECT_EQ(reader.unknown_keys().names,
            (std::vector<std::string>{"x", "parameters.y", "parameters.z"}));
}

// Texts and places as serde_json gives them, most of them recorded from TGI's router.
TEST(JsonReader, ErrorsNameThePathTheValueAndThePosition) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "syntax EOF while parsing a value at line 1 column 0"},
      {" ", "syntax EOF while parsing a value at line 1 column 1"},
      {"{", "syntax EOF while parsing an object at line 1 column 1"},
      {"1", "data invalid type: integer `1`, expected struct Outer at line 1 column 1"},
      {"null", "data invalid type: null, expected struct Outer at line 1 column 4"},
      {"{}", "data missing field `inputs` at line 1 column 2"},
      {"[]", "data missing field `inputs` at line 1 column 2"},
      {R"([{"inputs":"a"}])",
       "data invalid type: sequence, expected struct Outer at line 1 column 0"},
      {R"({"inputs":"a","parameters":[1]})",
       "data parameters: invalid type: sequence, expected struct Parameters at line 1 column 27"},
      {R"({"inputs":"a","inputs":"b"})", "data duplicate field `inputs` at line 1 column 22"},
      {R"({"inputs":"a",})", "syntax trailing comma at line 1 column 15"},
      {R"({'inputs':'a'})", "syntax key must be a string at line 1 column 2"},
      {R"({"inputs":"a"/*c*/})", "syntax expected `,` or `}` at line 1 column 14"},
      {R"({"inputs" "a"})", "syntax expected `:` at line 1 column 11"},
      {R"({"inputs":"\ud800"})", "syntax inputs: unexpected end of hex escape at line 1 column 18"},
      {R"({"inputs":"\x"})", "syntax inputs: invalid escape at line 1 column 13"},
      {"{\"inputs\":\"\xff\xfe\"}",
       "syntax inputs: invalid unicode code point at line 1 column 14"},
      {"{\n\n \"inputs\": 5\n}",
       "data inputs: invalid type: integer `5`, expected a string at line 3 column 12"},
      {R"({"inputs":"a","parameters":{"temperature":NaN}})",
       "syntax parameters.temperature: expected value at line 1 column 43"},
      {R"({"inputs": "Hello big world again", "parameters": {"temperature": 1e400}})",
       "syntax parameters.temperature: number out of range at line 1 column 71"},
      {R"({"inputs": "Hello big world again", "parameters": {"best_of": 1.0}})",
       "data parameters.best_of: invalid type: floating point `1.0`, expected usize at line 1 "
       "column 65"},
      {R"({"inputs": "Hello big world again", "parameters": {"best_of": -1}})",
       "data parameters.best_of: invalid value: integer `-1`, expected usize at line 1 column 64"},
      {R"({"parameters":{"best_of":18446744073709551616}})",
       "data parameters.best_of: invalid type: floating point `1.8446744073709552e19`, expected "
       "usize at line 1 column 45"},
      {R"({"parameters":{"top_k":2147483648}})",
       "data parameters.top_k: invalid value: integer `2147483648`, expected i32 at line 1 column "
       "33"},
      {R"({"parameters":{"stop":[" a",1]}})",
       "data parameters.stop[1]: invalid type: integer `1`, expected a string at line 1 column 29"},
      {R"({"parameters":{"stop":"a\"b\nc"}})",
       "data parameters.stop: invalid type: string \"a\\\"b\\nc\", expected a sequence at line 1 "
       "column 31"},
      {R"({"parameters":{"details":null}})",
       "data parameters.details: invalid type: null, expected a boolean at line 1 column 29"},
      {R"({"parameters":null})",
       "data parameters: invalid type: null, expected struct Parameters at line 1 column 18"},
      {R"({"inputs":tru})", "syntax inputs: expected ident at line 1 column 14"},
      {R"({"inputs":"a","x":01})", "syntax x: invalid number at line 1 column 20"},
      {R"({"inputs":"a","x":1.})", "syntax x: invalid number at line 1 column 21"},
      {R"({"inputs":"a","x":-})", "syntax x: invalid number at line 1 column 20"},
      {"{\"inputs\":\"a\nb\"}",
       "syntax inputs: control character (\\u0000-\\u001F) found while parsing a string at line 2 "
       "column 0"},
      {R"({"inputs":"abc)", "syntax inputs: EOF while parsing a string at line 1 column 14"},
      {R"({"inputs":"a","x":[1,)", "syntax x: EOF while parsing a value at line 1 column 21"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Parse(text), expected) << text;
}

// The path of an error names a key that cannot be read "?".
TEST(JsonReader, ErrorsInKeysAndInSkippedValues) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"parameters":{"top_k" 1}})", "syntax parameters: expected `:` at line 1 column 24"},
      {R"({"parameters":{"top_k":1 "x":2}})",
       "syntax parameters.?: expected `,` or `}` at line 1 column 26"},
      {R"({"parameters":{"top_k":1,}})", "syntax parameters.?: trailing comma at line 1 column 26"},
      {R"({"parameters":{"to)",
       "syntax parameters.?: EOF while parsing a string at line 1 column 18"},
      {R"({"parameters":{1:2}})", "syntax parameters.?: key must be a string at line 1 column 16"},
      {"{\"inputs\":\"a\",\"x\":\"a\tb\"}",
       "syntax x: control character (\\u0000-\\u001F) found while parsing a string at line 1 "
       "column 21"},
      {R"({"inputs":"a","x":{"y":1,}})", "syntax x.?: trailing comma at line 1 column 26"},
      {R"({"inputs":"a","x":[1,]})", "syntax x: trailing comma at line 1 column 22"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Parse(text), expected) << text;
}

TEST(JsonReader, NullAndWholeFloatsAreAcceptedIfTheLimitsSaySo) {
  const Limits lenient{.null_is_absent = true, .integral_floats = true};
  Outer out;
  EXPECT_EQ(Parse(R"({"inputs":"a","parameters":{"details":null,"top_k":5.0,"stop":null}})", out,
                  lenient),
            "ok");
  EXPECT_EQ(out.parameters.top_k, 5);
  EXPECT_NE(Parse(R"({"inputs":"a","parameters":{"top_k":5.5}})", out, lenient), "ok");
  EXPECT_NE(Parse(R"({"inputs":"a","parameters":{"top_k":1e300}})", out, lenient), "ok");
  EXPECT_NE(Parse(R"({"inputs":null})", out, lenient), "ok");  // a required field
}

TEST(JsonReader, DepthKeysAndValuesAreBounded) {
  const std::string deep = std::string(200'000, '[');
  Reader reader(deep);
  Value value;
  EXPECT_FALSE(ReadValue(reader, value, "a value"));
  EXPECT_EQ(reader.error().what, "recursion limit exceeded");
  EXPECT_THAT(Parse("{\"inputs\":\"a\",\"x\":" + deep),
              ::testing::HasSubstr("recursion limit exceeded"));
  std::string keys = "{\"inputs\":\"a\"";
  for (int i = 0; i < 5000; ++i) keys += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_THAT(Parse(keys + "}"), ::testing::HasSubstr("more than 4096 keys in one object"));
  std::string values = "{\"inputs\":\"a\",\"x\":[0";
  for (int i = 0; i < 1'000'000; ++i) values += ",0";
  EXPECT_THAT(Parse(values + "]}"), ::testing::HasSubstr("more than 1000000 values"));
}

TEST(JsonReader, ALongStringIsCutInErrors) {
  const std::string text =
      Parse("{\"inputs\":\"a\",\"parameters\":{\"details\":\"" + std::string(5000, 'x') + "\"}}");
  EXPECT_LT(text.size(), 400U);
}

// Our own parser must agree with a well-kept one on what is JSON.
TEST(JsonReader, AcceptsExactlyWhatBoostJsonAccepts) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  const std::vector<std::string> bases = {
      R"({"a":[1,-2.5e-3,"x\u00e9\ud83d\ude00\n",true,false,null,{}],"b":{"c":[[]]}})",
      R"([0,-0,1E+5,123456789012345678901234567890,"",{"":""}])",
      "\"\xc3\xa4\xf0\x9f\x98\x80\\\"\"",
      "-12.5e+10",
  };
  const std::string alphabet = "{}[]\",:\\u0123dD89eE+-.tfnrul \n\x01\xc3\xa4\xff";
  boost::json::parse_options options;
  options.max_depth = 64;
  int accepted = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::string text = bases[random() % bases.size()];
    for (int edits = static_cast<int>(random() % 3); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else if (random() % 2 == 0) {
        text.insert(at, 1, c);
      } else {
        text[at] = c;
      }
    }
    boost::json::error_code ec;
    boost::json::parse(text, ec, {}, options);
    Reader reader(text);
    std::string_view raw;
    bool ok = reader.ReadRaw(raw);
    // The reader stops after the first value; Boost wants the whole text.
    const std::string_view rest =
        ok ? std::string_view(text).substr(static_cast<std::size_t>(raw.end() - text.data()))
           : std::string_view();
    ok = ok && rest.find_first_not_of(" \t\r\n") == std::string_view::npos;
    // Numbers beyond binary64 are an error here and infinity there.
    if (!reader.ok() && reader.error().what == "number out of range") continue;
    if (ec == boost::json::error::exponent_overflow) continue;
    ASSERT_EQ(ok, !ec) << "seed " << seed << ": " << text << " " << reader.error().Text();
    accepted += ok;
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace penstock::router::json
