#include "tests/unit/text/story_schemas.h"

#include <algorithm>
#include <cctype>

namespace penstock::text {
namespace {

const std::string kName = R"([\w\d\s]{1,16})";

std::string Either(const std::vector<std::string>& all) {
  std::string out = "(";
  for (const std::string& one : all) out += (out.size() > 1 ? "|" : "") + one;
  return out + ")";
}

const std::vector<std::string> kHouses = {"Gryffindor", "Slytherin", "Ravenclaw", "Hufflepuff"};
const std::vector<std::string> kBlood = {"Pure-blood", "Half-blood", "Muggle-born"};
const std::vector<std::string> kWork = {"student",           "teacher",     "auror",
                                        "ministry of magic", "death eater", "order of the phoenix"};
const std::vector<std::string> kAlive = {"Alive", "Deceased"};

}  // namespace

StorySchemas::StorySchemas(std::string recorded, unsigned seed)
    : recorded_(std::move(recorded)), draw_(seed) {}

// Letters, digits and single blanks; it neither begins nor ends with a blank.
std::string StorySchemas::Piece(std::size_t most) {
  std::string out;
  for (std::size_t at = Below(recorded_.size() - 200); out.size() < most; ++at) {
    const char c = recorded_[at];
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!fits && !out.empty() && (c != ' ' || Below(2) == 0)) break;
    if (fits || (c == ' ' && !out.empty())) out += c;
  }
  while (out.back() == ' ') out.pop_back();
  return out;
}

std::string StorySchemas::Word() {
  std::string word = Piece(1 + Below(12));
  return word.substr(0, word.find(' '));
}

std::string StorySchemas::Choice(const std::vector<std::string>& all) {
  return all[Below(all.size())];
}

std::string StorySchemas::Digits(int least, int most) {
  std::string out;
  const int count = least + static_cast<int>(Below(most - least + 1));
  for (int i = 0; i < count; ++i) out += static_cast<char>('0' + Below(10));
  return out;
}

StorySchemas::Example StorySchemas::Character() {
  Example out;
  const auto add = [&](const std::string& fixed, const std::string& grammar,
                       const std::string& value) {
    for (const char c : fixed) out.grammar += std::string(c == '{' || c == '}' ? "\\" : "") + c;
    out.text += fixed + value;
    out.grammar += grammar;
  };
  add("{\n    \"name\": \"", kName, Piece(16));
  add("\",\n    \"house\": \"", Either(kHouses), Choice(kHouses));
  add("\",\n    \"blood status\": \"", Either(kBlood), Choice(kBlood));
  add("\",\n    \"occupation\": \"", Either(kWork), Choice(kWork));
  add("\",\n    \"wand\": {\n        \"wood\": \"", kName, Piece(16));
  add("\",\n        \"core\": \"", kName, Piece(16));
  add("\",\n        \"length\": ", R"([0-9]{1,2}\.[0-9]{0,2})", Digits(1, 2) + "." + Digits(0, 2));
  add("\n    },\n    \"alive\": \"", Either(kAlive), Choice(kAlive));
  add("\",\n    \"patronus\": \"", kName, Piece(16));
  add("\",\n    \"bogart\": \"", kName, Piece(16));
  add("\"\n}", "", "");
  return out;
}

StorySchemas::Example StorySchemas::City() {
  Example out;
  const auto add = [&](const std::string& fixed, const std::string& grammar,
                       const std::string& value) {
    for (const char c : fixed) {
      const bool special = c == '{' || c == '}' || c == '[' || c == ']';
      out.grammar += std::string(special ? "\\" : "") + c;
    }
    out.text += fixed + value;
    out.grammar += grammar;
  };
  add("{\n  \"name\": \"", kName, Piece(16));
  add("\",\n  \"country\": \"", kName, Piece(16));
  add("\",\n  \"latitude\": ", R"([-+]?[0-9]*\.?[0-9]{0,2})", Digits(1, 2) + "." + Digits(1, 2));
  add(",\n  \"population\": ", "[-+]?[0-9]{1,9}", Digits(3, 9));
  add(",\n  \"top 3 landmarks\": [\"", kName, Piece(16));
  add("\", \"", kName, Piece(16));
  add("\", \"", kName, Piece(16));
  add("\"]\n}", "", "");
  return out;
}

StorySchemas::Part StorySchemas::Value(int depth) {
  switch (Below(depth > 2 ? 5 : 7)) {
    case 0:
      return {R"({"type":"string"})", "\"" + Piece(1 + Below(60)) + "\""};
    case 1:
      return {R"({"type":"integer"})", std::to_string(Below(100000))};
    case 2:
      return {R"({"type":"boolean"})", Below(2) == 0 ? "true" : "false"};
    case 3: {
      const std::string own = "\"" + Piece(20) + "\"";
      return {"{\"enum\":[\"" + Piece(20) + "\"," + own + ",\"" + Piece(9) + "\"]}", own};
    }
    case 4: {
      const std::string own = "\"" + Piece(40) + "\"";
      return {"{\"const\":" + own + "}", own};
    }
    case 5: {
      const Part item = Value(depth + 1);
      return {R"({"type":"array","items":)" + item.schema + R"(,"minItems":1,"maxItems":3})",
              "[" + item.value + "]"};
    }
    default:
      return Object(depth + 1);
  }
}

StorySchemas::Part StorySchemas::Object(int depth) {
  const std::string comma = Below(2) == 0 ? "," : ", ";
  const std::string colon = Below(2) == 0 ? ":" : ": ";
  std::string properties, required, value;
  const std::size_t count = 1 + Below(5);
  for (std::size_t i = 0; i < count; ++i) {
    const char* const joints[] = {"_", "-", " ", "", "."};
    const std::string key = "\"" + Word() + joints[Below(5)] + Word() + std::to_string(i) + "\"";
    const Part part = Value(depth);
    properties += (i > 0 ? "," : "") + key + ":" + part.schema;
    required += (i > 0 ? "," : "") + key;
    value += (i > 0 ? comma : "") + key + colon + part.value;
  }
  return {"{\"type\":\"object\",\"properties\":{" + properties + "},\"required\":[" + required +
              "],\"additionalProperties\":false}",
          "{" + value + "}"};
}

StorySchemas::Example StorySchemas::Random() {
  const Part part = Object(0);
  return {GrammarSpec::Kind::kJsonSchema, part.schema, part.value};
}

}  // namespace penstock::text
