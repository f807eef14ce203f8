// The loop of a thread that runs the handlers of an io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <exception>
#include <string>

#include "common/log.h"

namespace penstock::router {

// Returns once the context is stopped. A handler throws only if memory runs out: its connection or
// request ends, the others continue.
inline void RunLoop(boost::asio::io_context& context) {
  while (!context.stopped()) {
    try {
      context.run();
    } catch (const std::exception& failure) {
      log::Error("a handler of the event loop failed: " + std::string(failure.what()));
    }
  }
}

}  // namespace penstock::router
