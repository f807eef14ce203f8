// SageMaker's route, POST /invocations, where several dialects share it: DJL's, OpenAI's chats and
// TGI's. The keys of a body tell its dialect; if they do not, the server's default applies.
#pragma once

#include <memory>
#include <string_view>

#include "router/api/dialect.h"
#include "router/api/djl/options.h"

namespace penstock::router::sagemaker {

// `fallback`: the server's default dialect; it writes the errors of refused requests. It must
// outlive the result.
std::unique_ptr<const Dialect> MakeDialect(const DjlOptions& options, const Dialect& fallback);

enum class BodyKind { kDjl, kChat, kTgi };
// What the keys of a body say; `otherwise` if they do not say.
BodyKind KindOf(std::string_view body, BodyKind otherwise);

}  // namespace penstock::router::sagemaker
