// The Python process that computes the model of one shard. A call sends one request and waits for
// its reply. The calls, with the fields of request and reply:
//
//   describe  folder, dtype, trust_remote_code  -> the fields of description.cc
//   load                                        -> weight_bytes, ways, notes; progress before it
//   reset     timing                            -> nothing: forgets all sequences
//   execute   tokens, segments; the body has    -> nothing
//             int32 tokens, then slot, rows and context of each segment, then logit rows
//   logits    first, count                      -> width; the body has float32 [count, width]
//   release   slots                             no reply
//
// A reply with `error` instead says what failed, in one line.
//
// The kernel kills the child when the thread that started it ends, and the destructor kills it.
//
// Threading: one thread, which started it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "shard/backend/transformers/frame.h"

namespace penstock::shard::transformers {

// The interpreter that --python names, or else that of the active virtual environment
// ($VIRTUAL_ENV), or else python3 in PATH. Unavailable, naming the option, if there is none.
absl::StatusOr<std::string> FindPython(const std::string& given);

class PythonChild {
 public:
  // Returns whether to go on. `bytes` is the memory that the child has.
  using OnProgress = std::function<bool(std::string_view stage, std::uint64_t bytes)>;

  static absl::StatusOr<std::unique_ptr<PythonChild>> Start(const std::string& python,
                                                            std::uint32_t threads);
  ~PythonChild();
  PythonChild(const PythonChild&) = delete;
  PythonChild& operator=(const PythonChild&) = delete;

  // Unavailable, with how the child ended, if it is lost; Cancelled if `on_progress` says so.
  absl::StatusOr<Frame> Call(const boost::json::object& request,
                             std::span<const std::byte> body = {}, std::uint64_t most_body = 0,
                             const OnProgress& on_progress = {});

  // A request without a reply.
  absl::Status Send(const boost::json::object& request);

  pid_t pid() const { return pid_; }

 private:
  PythonChild(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  // After a broken connection: waits for the end of the process and says how it ended.
  absl::Status Lost();
  void End();

  pid_t pid_;
  int socket_;
  std::string end_;  // how it ended; empty: it runs
};

}  // namespace penstock::shard::transformers
