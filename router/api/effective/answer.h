// The answer of POST /inference, and its entry in the statistics.
#pragma once

#include <memory>

#include "router/api/effective/request.h"
#include "router/api/effective/stats_book.h"
#include "router/api/run.h"
#include "router/http/application.h"

namespace penstock::router::effective {

// `arrived`: when the head was read; the statistics count from there.
std::unique_ptr<AnswerWriter> MakeAnswer(std::shared_ptr<StatsBook> book, const Request& request,
                                         Time arrived, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::effective
