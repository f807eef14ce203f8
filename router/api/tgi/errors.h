// Errors as text-generation-inference writes them: {"error": …, "error_type": …}, or plain text
// where its HTTP framework answers.
#pragma once

#include <string>

#include "router/api/dialect.h"

namespace penstock::router::tgi {

const ErrorFormat& Errors();

// The message with the prefix that TGI gives to errors of its kind.
std::string TgiMessage(const ApiError& error);

}  // namespace penstock::router::tgi
