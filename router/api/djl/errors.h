// DJL's envelopes: what its Python side says ({"code", "error"}, and with it what a request whose
// text is missing has) and what its front end says ({"code", "type", "message"}).
#pragma once

#include <string>

#include "router/api/errors.h"

namespace penstock::router::djl {

std::string ErrorBody(const ErrorRow& row, const ApiError& error);

}  // namespace penstock::router::djl
