// What a route answers, for the OpenAPI document.
#pragma once

#include <string>

#include "router/api/routes.h"

namespace penstock::router::tgi {

// "responses":{…} of a route of the profile: each status with the schema of each media type. A
// stream's schema is that of one event.
void AppendResponses(std::string& out, const Route& route, bool tgi_profile);

}  // namespace penstock::router::tgi
