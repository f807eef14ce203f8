// Grammars of the TGI dialect: what a schema becomes, and what is refused.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "router/api/tgi/chat/tools.h"
#include "router/api/tgi/grammar/schema_check.h"
#include "router/api/tgi/grammar/schema_regex.h"

namespace penstock::router::tgi {
namespace {

json::Value Parse(std::string_view text) {
  json::Reader reader(text);
  json::Value value;
  EXPECT_TRUE(json::ReadValue(reader, value, "a value")) << text;
  return value;
}

std::string Regex(std::string_view schema) {
  const auto outcome = SchemaToRegex(Parse(schema));
  if (!outcome.ok()) return "error: " + std::string(outcome.status().message());
  return *outcome;
}

TEST(JsonValue, OfEqualKeysTheLastValueCountsAtTheFirstOnesPlace) {
  EXPECT_EQ(json::ToText(Parse(R"({"a":1,"b":2,"a":{"c":1,"c":3},"d":4,"b":5,"a":6})")),
            R"({"a":6,"b":5,"d":4})");
  EXPECT_EQ(json::ToText(Parse(R"({"a":{"c":1,"c":3}})")), R"({"a":{"c":3}})");
  EXPECT_EQ(json::ToText(Parse(R"({"b":1,"a":2,"":3})")), R"({"b":1,"a":2,"":3})");
}

TEST(TgiSchema, PropertiesKeepTheirOrderAndOptionalOnesBringTheirComma) {
  EXPECT_EQ(Regex(R"({"properties":{"a":{"type":"integer"}},"required":["a"]})"),
            R"(\{[ ]?"a"[ ]?:[ ]?(-)?(0|[1-9][0-9]*)[ ]?\})");
  EXPECT_EQ(
      Regex(R"({"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},)"
            R"("required":["b"]})"),
      R"re(\{([ ]?"a"[ ]?:[ ]?null[ ]?,)?[ ]?"b"[ ]?:[ ]?null([ ]?,[ ]?"c"[ ]?:[ ]?null)?[ ]?\})re");
  EXPECT_EQ(Regex(R"({"properties":{}})"), R"(\{()?[ ]?\})");
}

// docs/api/grammar.md has the same lists.
TEST(TgiSchema, KeywordsThatTgiIgnoresChangeNothing) {
  const auto with = [](std::string_view type, std::string_view keyword) {
    return Regex(R"({"properties":{"a":{"type":")" + std::string(type) + "\"" +
                 std::string(keyword) + "}}}");
  };
  for (const auto& [type, keywords] :
       {std::pair<const char*, std::vector<const char*>>(
            "integer", {R"("minimum":1)", R"("maximum":9)", R"("exclusiveMinimum":1)",
                        R"("exclusiveMaximum":9)", R"("multipleOf":2)"}),
        {"array",
         {R"("uniqueItems":true)", R"("contains":{})", R"("minContains":1)", R"("maxContains":1)"}},
        {"object",
         {R"("patternProperties":{"x":{}})", R"("propertyNames":{})", R"("dependentSchemas":{})",
          R"("dependentRequired":{})"}},
        {"string",
         {R"("not":{})", R"("if":{},"then":{},"else":{})", R"("title":"t")", R"("description":"d")",
          R"("default":"x")", R"("examples":[])"}}}) {
    for (const char* keyword : keywords) {
      EXPECT_EQ(with(type, std::string(",") + keyword), with(type, "")) << keyword;
    }
  }
}

TEST(TgiSchema, WhatCannotBeAnExpressionIsRefused) {
  const auto error = [](std::string_view value) {
    return Regex(R"({"properties":{"a":)" + std::string(value) + "}}");
  };
  EXPECT_EQ(error(R"({"type":["string","null"]})"), "error: 'type' must be a string");
  EXPECT_EQ(error(R"({"type":"string","format":"email"})"),
            "error: Format email is not supported by Outlines");
  EXPECT_EQ(error(R"({"enum":[{"b":[1,"x",null,true,{}]}]})"),
            R"(error: Unsupported data type in enum: {"b":[1,"x",null,true,{}]})");
  EXPECT_EQ(error(R"({"const":[]})"), "error: Unsupported data type in const: []");
  EXPECT_EQ(error(R"({"$ref":"http://a/b#/c"})"),
            "error: External references are not supported: http://a/b#/c");
  EXPECT_EQ(error(R"({"$ref":"#a#b"})"), "error: Invalid reference format: #a#b");
  EXPECT_EQ(error(R"({"$ref":"other.json"})"), "error: Invalid reference path: other.json");
  EXPECT_EQ(error("true"), "error: Invalid JSON Schema: expected an object");
}

// "{,3}" is no repetition to a regular expression.
TEST(TgiSchema, AnAbsentLowerBoundIsZero) {
  const auto regex = [](std::string_view value) {
    return Regex(R"({"properties":{"a":)" + std::string(value) + R"(},"required":["a"]})");
  };
  // std::regex does not read the characters of a string.
  EXPECT_NE(regex(R"({"type":"string","maxLength":2})").find("){0,2}\""), std::string::npos);
  const std::regex integer(regex(R"({"type":"integer","maxDigits":2})"));
  EXPECT_TRUE(std::regex_match(R"({"a":7})", integer));
  EXPECT_FALSE(std::regex_match(R"({"a":123})", integer));
  const std::regex number(regex(R"({"type":"number","maxDigitsFraction":1})"));
  EXPECT_TRUE(std::regex_match(R"({"a":1.5})", number));
  EXPECT_FALSE(std::regex_match(R"({"a":1.55})", number));
}

TEST(TgiSchema, AReferenceMayNameTheSchemaItself) {
  constexpr std::string_view kBoolean = R"re(\{([ ]?"a"[ ]?:[ ]?(true|false))?[ ]?\})re";
  for (const char* reference : {"#/$defs/x", "$defs/x", "http://a/b#/$defs/x"}) {
    EXPECT_EQ(Regex(R"({"$id":"http://a/b","properties":{"a":{"$ref":")" + std::string(reference) +
                    R"("}},"$defs":{"x":{"type":"boolean"}}})"),
              kBoolean)
        << reference;
  }
}

TEST(TgiTools, AForcedCallHasItsNameAndEveryRequiredArgument) {
  Tool tool;
  tool.type = "function";
  tool.function.name = "add";
  tool.function.arguments =
      Parse(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"}},)"
            R"("required":["a"]})");
  ToolChoice required;
  required.kind = ToolChoice::Kind::kRequired;
  const auto outcome = OfferTools({tool}, required);
  const auto& offered = std::get<std::optional<OfferedTools>>(outcome);
  ASSERT_TRUE(offered);
  const auto expression = SchemaToRegex(offered->schema);
  const std::regex calls(expression.value());
  const auto is_call = [&calls](const char* text) { return std::regex_match(text, calls); };
  EXPECT_TRUE(is_call(R"({"function": {"_name": "add", "a": 1}})"));
  EXPECT_TRUE(is_call(R"({"function": {"_name": "add", "a": -20, "b": null}})"));
  for (const char* text :
       {R"({"function": {}})", R"({"function": {"_name": "add"}})",
        R"({"function": {"_name": "add", "b": null}})", R"({"function": {"a": 1}})"}) {
    EXPECT_FALSE(is_call(text)) << text;
  }
}

TEST(TgiSchema, AReferenceIsFollowedAndACycleEnds) {
  EXPECT_EQ(Regex(R"({"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"boolean"}}})"),
            R"re(\{([ ]?"a"[ ]?:[ ]?(true|false))?[ ]?\})re");
  EXPECT_EQ(Regex(R"({"properties":{"a":{"$ref":"#/$defs/x"}}})"),
            "error: Invalid reference path: $defs");
  EXPECT_EQ(Regex(R"({"properties":{"a":{"$ref":"#"}}})"),
            "error: the schema nests deeper than 64");
}

std::string OptionalTexts(int count) {
  std::string schema = R"({"properties":{)";
  for (int i = 0; i < count; ++i) {
    schema += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + R"(":{"type":"string"})";
  }
  return schema + "}}";
}

TEST(TgiSchema, AnExplodingSchemaIsRefusedBeforeItGrows) {
  EXPECT_EQ(Regex(OptionalTexts(2000)),
            "error: the expression of this schema must have at most 262144 bytes");
}

TEST(TgiSchema, OptionalPropertiesGrowHardlyFasterThanTheirNumber) {
  EXPECT_LT(Regex(OptionalTexts(80)).size(), 40'000u);  // TGI's has 380,000
  EXPECT_LT(Regex(OptionalTexts(300)).size(), 200'000u);
}

TEST(TgiSchema, ValuesThatNoSchemaMayHaveAreNamed) {
  EXPECT_EQ(FindSchemaError(Parse(R"({"type":"object","properties":{"a":{}}})")), std::nullopt);
  EXPECT_EQ(FindSchemaError(Parse(R"({"properties":5})")), "5 is not of type \"object\"");
  EXPECT_EQ(FindSchemaError(Parse(R"({"properties":{"a":{"type":"nope"}}})")),
            "\"nope\" is not valid under any of the schemas listed in the 'anyOf' keyword");
  EXPECT_EQ(FindSchemaError(Parse(R"({"items":{"minLength":-1}})")),
            "-1 is less than the minimum of 0");
  EXPECT_EQ(FindSchemaError(Parse(R"({"maxItems":1.5})")), "1.5 is not of type \"integer\"");
  EXPECT_EQ(FindSchemaError(Parse(R"({"anyOf":[]})")), "[] has less than 1 item");
  EXPECT_EQ(FindSchemaError(Parse(R"({"required":[1]})")), "1 is not of type \"string\"");
  EXPECT_EQ(FindSchemaError(Parse("\"x\"")), "\"x\" is not of types \"boolean\", \"object\"");
}

TEST(TgiTools, ACallIsReadWholeAndWhileItIsWritten) {
  const auto call = ReadCall(R"({"function": {"_name": "add", "a": 1, "b": "x"}})");
  ASSERT_TRUE(std::holds_alternative<WrittenCall>(call));
  EXPECT_EQ(std::get<WrittenCall>(call).name, "add");
  EXPECT_EQ(json::ToText(std::get<WrittenCall>(call).arguments), R"({"a":1,"b":"x"})");
  EXPECT_FALSE(ReadOpenCall(R"({"function": {"_name": "ad)").has_value());
  ASSERT_TRUE(ReadOpenCall(R"({"function": {"_name": "add",)").has_value());
  EXPECT_EQ(ReadOpenCall(R"({"function": {"_name": "add",)")->name, "add");
  const auto wrong = ReadCall("{\"_name\": \"add\"}");
  EXPECT_EQ(std::get<ApiError>(wrong).message,
            "Failed to parse generated text: missing field `function` at line 1 column 16 "
            R"("{\"_name\": \"add\"}")");
}

}  // namespace
}  // namespace penstock::router::tgi
