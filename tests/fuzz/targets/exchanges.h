// The whole HTTP application in front of a PlayedEngine, without sockets and threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "router/api/api.h"
#include "router/api/context.h"
#include "router/http/message.h"
#include "router/metrics/metrics.h"
#include "tests/fuzz/targets/played_engine.h"

namespace penstock::fuzz {

// Which server answers.
enum class Server {
  kText,     // a model that generates text
  kTgi,      // the same in the place of TGI's router
  kVectors,  // a model that gives vectors
};

class Exchanges {
 public:
  explicit Exchanges(Server server);

  // Answers one request. There must be exactly one answer, with a sound status, and an error must
  // be JSON or a line of text. `script` chooses what the engine generates.
  void Answer(router::RequestHead head, std::string body, std::uint64_t script);
  // The answer to a request that was refused before it was read.
  void Refuse(const router::RequestHead& head, const router::HttpFailure& failure) const;

 private:
  PlayedEngine engine_;
  router::Metrics metrics_;
  router::ApiContext context_;
  router::Api api_;
};

}  // namespace penstock::fuzz
