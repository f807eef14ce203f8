// The OpenAPI document, written from the tables of routes and of what their readers take.
#pragma once

#include <string>

namespace penstock::router::tgi {

// `tgi_profile`: of a server started with --api-profile tgi.
std::string OpenApi(bool tgi_profile, const std::string& version);

}  // namespace penstock::router::tgi
