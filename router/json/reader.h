// A strict pull parser for request bodies: one pass and no tree. A dialect asks for the values that
// it knows, in the order in which the client wrote them. The reader keeps the first error with its
// path, line and column; all later calls fail.
//
// A tree would not do. Messages, tools and schemas are kept as the text that the client sent,
// because templates and grammars depend on the order of keys. Errors name field, value and place,
// and clients of TGI see the error texts of serde_json, which is why the texts and positions here
// follow serde_json. Limits are our own.
//
// Strings must be valid UTF-8 without lone surrogates. Text after the first value is not read.
// One owner; not synchronised. The text must outlive the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::router::json {

struct Limits {
  std::size_t depth = 64;          // nested arrays and objects
  std::size_t members = 4096;      // keys of one object
  std::size_t values = 1'000'000;  // of one body
  bool null_is_absent = false;     // null for a plain field leaves its default
  bool integral_floats = false;    // 1.0 is an integer
};

struct Error {
  enum class Kind : std::uint8_t {
    kSyntax,  // not JSON, or over a limit of structure
    kData,    // JSON of another shape than asked for
  };
  Kind kind = Kind::kSyntax;
  std::string path;      // "parameters.stop[0]"; empty at the top
  std::string what;      // "invalid type: null, expected a string"
  std::string found;     // for a wrong type or value: "null", "integer `5`", "string \"x\""
  std::string expected;  // beside it: "a string"
  std::size_t line = 1;
  std::size_t column = 0;

  // "path: what at line L column C", serde_json's form.
  std::string Text() const;
  // The same without the path.
  std::string Place() const;
};

struct Number {
  enum class Kind : std::uint8_t { kUnsigned, kNegative, kFloat };
  Kind kind = Kind::kUnsigned;
  std::uint64_t magnitude = 0;  // kUnsigned
  std::int64_t negative = 0;    // kNegative
  double value = 0;             // all kinds
};

// Keys that were skipped: no table knows them, or they have no effect.
struct UnknownKeys {
  static constexpr std::size_t kNamesMax = 10;
  static constexpr std::size_t kNameBytesMax = 100;

  std::uint64_t count = 0;                  // of unknown ones
  std::vector<std::string> names;           // paths of the first, each once and cut
  std::string nearest;                      // a known key like the first one; empty if none is
  std::vector<std::string> without_effect;  // known ones, each once

  // `path` leads to `key`. `known`: the keys of the object that has this one.
  void Add(std::string_view path, std::string_view key, std::span<const std::string_view> known);
  void Add(const UnknownKeys& others);
  // Adds those whose names are not here yet.
  void AddNew(const UnknownKeys& others);
  void AddWithoutEffect(std::string_view path);

 private:
  void AddName(std::string_view name);
};

class Reader {
 public:
  explicit Reader(std::string_view text, Limits limits = {});

  const Limits& limits() const { return limits_; }
  const UnknownKeys& unknown_keys() const { return unknown_keys_; }
  UnknownKeys& unknown_keys() { return unknown_keys_; }
  // The names of keys that came under another one, with that one. Of static storage.
  using Aliases = std::vector<std::pair<std::string_view, std::string_view>>;
  const Aliases& aliases() const { return aliases_; }
  void AddAlias(std::string_view name, std::string_view alias) {
    aliases_.emplace_back(name, alias);
  }
  bool ok() const { return !failed_; }
  const Error& error() const { return error_; }

  // If the next value is null, takes it and returns true.
  bool TakeNull();
  // Whether the next value begins with this character ('[', '{', '"' …).
  bool NextIs(char c);

  // Each takes one value of that kind or fails naming `expected`. False after any failure.
  bool ReadBool(bool& out, std::string_view expected);
  bool ReadString(std::string& out, std::string_view expected);
  bool ReadNumber(Number& out, std::string_view expected);
  // Any value; `out` is its text in the body.
  bool ReadRaw(std::string_view& out);
  bool Skip();

  // The path of a key of the innermost object: "parameters.stop".
  std::string PathTo(std::string_view key) const;

  // Fails if anything but blanks follows the value.
  bool AtEnd();

  //   if (!r.EnterObject("a map")) …; while (r.NextKey(key)) { …; r.Colon() && r.ReadX(…); }
  bool EnterObject(std::string_view expected) { return Enter(false, expected); }
  bool NextKey(std::string& key);  // false at the end (which is taken) or on failure
  bool Colon();                    // between a key and its value
  bool EnterArray(std::string_view expected) { return Enter(true, expected); }
  bool NextElement();  // false at the end (which is taken) or on failure
  // Takes [] or fails.
  bool EnterEmptyArray(std::string_view expected);

  // Failures that the caller finds, at the present position. All return false.
  bool FailType(std::string_view found, std::string_view expected) {
    return FailFound("invalid type: ", found, expected);
  }
  bool FailValue(std::string_view found, std::string_view expected) {
    return FailFound("invalid value: ", found, expected);
  }
  bool FailHere(std::string_view what) { return Fail(Error::Kind::kData, what, position_); }
  // A whole value was read, and it has none of the accepted shapes. The position is that of serde.
  bool FailShape(std::string what);
  // The next value has the wrong type. Reads as much of it as the error shows.
  bool FailNext(std::string_view expected);

 private:
  struct Level {
    bool array = false;
    bool first = true;
    std::size_t index = 0;    // of the present element
    std::size_t members = 0;  // keys seen
    std::string key;          // of the present member
    bool in_key = false;      // the next key is being looked for
    bool in_value = false;    // the present key's value is being read
  };

  bool Peek(char& c, std::string_view eof);
  bool Fail(Error::Kind kind, std::string_view what, std::size_t index);
  bool Syntax(std::string_view what) { return Fail(Error::Kind::kSyntax, what, position_); }
  bool SyntaxPeek(std::string_view what);
  bool FailFound(std::string_view problem, std::string_view found, std::string_view expected);
  bool Enter(bool array, std::string_view expected);
  bool Next();
  bool CountValue();
  bool Ident(std::string_view rest);
  bool Text(std::string& out);
  bool Escape(std::string& out);
  bool Hex4(std::uint32_t& out);
  bool SkipDigits();  // false if there is none
  bool ScanNumber(Number& out);
  bool ToNumber(std::string_view text, bool integral, Number& out);
  std::string Path(std::size_t depth) const;

  std::string_view text_;
  Limits limits_;
  std::size_t position_ = 0;
  std::size_t values_ = 0;
  UnknownKeys unknown_keys_;
  Aliases aliases_;
  std::vector<Level> levels_;
  bool failed_ = false;
  Error error_;
};

// "floating point `1.5`", "integer `-1`": how errors show a number.
std::string Describe(const Number& number);
// "string \"a\\nb\"", cut when very long.
std::string DescribeString(std::string_view text);

}  // namespace penstock::router::json
