// Arguments with a marker before and after each name and value: <parameter=city>Paris</parameter>.
// Values become JSON of the types that the tool's schema gives.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "router/answer/bodies/body.h"
#include "router/answer/tool_set.h"

namespace penstock::router::answer {

struct ArgumentTags {
  std::string_view before_name;
  std::string_view after_name;
  std::string_view before_value;  // after `after_name` and blanks; may be empty
  std::string_view after_value;
  std::string_view end;     // of all arguments
  bool lines = false;       // the value stands between two line feeds
  bool names_type = false;  // string="true" or string="false" may stand after the name
};

// `tool` and `tags` must live as long. What is no argument is kept as it is, up to the end.
std::unique_ptr<Body> MakeTaggedBody(const ArgumentTags& tags, const Tool& tool);

}  // namespace penstock::router::answer
