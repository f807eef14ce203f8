// The common part of all generating routes: permits, lowering, one run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/context.h"
#include "router/api/hints.h"
#include "router/api/run.h"
#include "router/api/tgi/generate/answer.h"
#include "router/api/tgi/generate/lower.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

struct Flow {
  std::string_view route;
  Mode mode = Mode::kPlain;
  bool compat = false;   // POST /: mode by the body, array answer, full text by default
  bool own_keys = true;  // keys that TGI does not have count
};

void Serve(ApiContext& context, const Flow& flow, HttpRequest request,
           std::shared_ptr<Exchange> exchange);
// The same for a body that has been parsed.
void Serve(ApiContext& context, const Flow& flow, const RequestHead& head, Request request,
           std::shared_ptr<Exchange> exchange);

// One or several requests that are answered together; all have the same parameters.
struct Job {
  Job(const RequestHead& head, std::shared_ptr<Exchange> to, bool stream)
      : mode(stream ? Mode::kStream : Mode::kPlain),
        arrived(head.arrived),
        read(head.read),
        client_id(head.request_id),
        hints(ReadHints(head)),
        exchange(std::move(to)) {}

  std::vector<Request> requests;
  Mode mode;
  Time arrived;
  Time read;
  std::string client_id;
  std::variant<Hints, ApiError> hints;  // of the head
  std::shared_ptr<Exchange> exchange;
  std::function<void(const ApiError&)> refuse;  // answers; the error is counted already
  std::function<std::unique_ptr<AnswerWriter>(std::size_t candidates)> make_writer;
};
void StartJob(ApiContext& context, Job job);

// The part of the style that all answers of TGI share.
AnswerStyle CommonStyle(const ApiContext& context, std::string_view inputs, Time arrived);

}  // namespace penstock::router::tgi
