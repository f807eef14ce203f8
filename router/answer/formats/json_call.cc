#include "router/answer/formats/json_call.h"

#include "router/answer/bodies/json_body.h"

namespace penstock::router::answer {
namespace {

bool IsArgumentsKey(std::string_view key) { return key == "arguments" || key == "parameters"; }

// What stands before the value of a member.
bool TakeKey(Cursor& cursor, std::string_view& key) {
  return cursor.SkipBlanks() && cursor.TakeString(key) && cursor.SkipBlanks() && cursor.Take(":") &&
         cursor.SkipBlanks();
}

bool TakeName(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take("\"") && cursor.TakeTool(tools, header.tool) && cursor.Take("\"");
}

// The arguments, after the name: their reader begins here, or they are null.
bool BeginArguments(Cursor& cursor, Header& header, Texts ends) {
  if (cursor.NextIs('"')) {
    header.body = MakeJsonStringBody();
    return true;
  }
  if (!cursor.Take("null")) return ReadArguments(cursor, header, ends);
  header.arguments = "{}";
  return true;
}

// The arguments, before the name.
bool KeepArguments(Cursor& cursor, Header& header) {
  std::string_view value;
  const bool object = cursor.NextIs('{');
  if (!object || !cursor.TakeValue(value)) return false;
  header.arguments = value;
  return true;
}

}  // namespace

bool ReadArguments(Cursor& cursor, Header& header, Texts ends) {
  if (!cursor.NextIs('{')) return false;
  header.body = MakeJsonBody(ends);
  return true;
}

bool ReadJsonCall(Cursor& cursor, const ToolSet& tools, Header& header, Texts ends) {
  if (!cursor.SkipBlanks() || !cursor.Take("{")) return false;
  while (true) {
    std::string_view key;
    std::string_view value;
    if (!TakeKey(cursor, key)) return false;
    if (key == "name") {
      if (!TakeName(cursor, tools, header)) return false;
    } else if (IsArgumentsKey(key) && header.tool != nullptr) {
      return BeginArguments(cursor, header, ends);
    } else if (IsArgumentsKey(key)) {
      if (!KeepArguments(cursor, header)) return false;
    } else if (!cursor.TakeValue(value)) {
      return false;
    }
    cursor.SkipBlanks();
    if (header.tool != nullptr && !header.arguments.empty()) return true;
    if (cursor.Take(",")) continue;
    // A call without arguments ends here. The tail reads the brace.
    if (header.tool == nullptr || !cursor.NextIs('}')) return false;
    header.arguments = "{}";
    return true;
  }
}

bool ReadJsonTail(Cursor& cursor) {
  cursor.SkipBlanks();
  while (cursor.Take(",")) {
    std::string_view key;
    std::string_view value;
    if (!TakeKey(cursor, key) || !cursor.TakeValue(value)) return false;
    cursor.SkipBlanks();
  }
  return cursor.Take("}");
}

}  // namespace penstock::router::answer
