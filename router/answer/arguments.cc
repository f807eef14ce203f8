#include "router/answer/arguments.h"

#include "router/json/reader.h"
#include "router/json/writer.h"

namespace penstock::router::answer {

std::string ArgumentsObject(std::string_view arguments) {
  if (arguments.empty()) return "{}";
  json::Reader reader(arguments);
  const bool object = reader.NextIs('{') && reader.Skip() && reader.AtEnd();
  return object ? std::string(arguments) : json::ObjectText("INVALID_JSON", arguments);
}

}  // namespace penstock::router::answer
