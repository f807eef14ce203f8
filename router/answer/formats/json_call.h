// Calls that are a JSON object with a name and arguments, which several formats write.
#pragma once

#include "router/answer/format.h"

namespace penstock::router::answer {

// {"name": "f", "arguments": {… The keys may have any order; `parameters` is another name of the
// arguments. They end before one of `ends` at the latest, which must live as long.
bool ReadJsonCall(Cursor& cursor, const ToolSet& tools, Header& header, Texts ends);

// The rest of the object after its arguments.
bool ReadJsonTail(Cursor& cursor);

// The arguments of a call whose name was read: a JSON object, which is next.
bool ReadArguments(Cursor& cursor, Header& header, Texts ends);

}  // namespace penstock::router::answer
