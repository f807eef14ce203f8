// Keys of OpenAI's bodies that have no effect here: an answer means the same without them.
// docs/api/openai.md says why each is one. A key whose absence would change the answer is refused
// instead.
#pragma once

#include <array>

#include "router/json/fields.h"

namespace penstock::router {

template <class T>
constexpr auto kOpenAiChatKeysWithoutEffect = std::array{
    json::WithoutEffect<T>("metadata"),
    json::WithoutEffect<T>("prediction"),
    json::WithoutEffect<T>("prompt_cache_key"),
    json::WithoutEffect<T>("prompt_cache_options"),
    json::WithoutEffect<T>("prompt_cache_retention"),
    json::WithoutEffect<T>("safety_identifier"),
    json::WithoutEffect<T>("service_tier"),
    json::WithoutEffect<T>("store"),
    json::WithoutEffect<T>("user"),
    json::WithoutEffect<T>("verbosity"),
};

template <class T>
constexpr auto kOpenAiCompletionKeysWithoutEffect = std::array{
    json::WithoutEffect<T>("user"),
};

}  // namespace penstock::router
