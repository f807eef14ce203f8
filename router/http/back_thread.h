// Computing out of everybody's way without holding anybody up. A thread that has stepped back
// (common/thread_priority.h) may stand still for as long as the machine is busy; if it held a lock
// then, whoever wants that lock would stand still with it. So it gets pure functions only, from a
// thread of usual priority that waits for each of them and does everything else itself.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace penstock::router {

// Serves the thread that made it, its owner, until it ends there.
class BackThread {
 public:
  BackThread();
  ~BackThread();
  BackThread(const BackThread&) = delete;
  BackThread& operator=(const BackThread&) = delete;

 private:
  friend void RunInBack(const std::function<void()>& work);

  enum State : int { kIdle, kWorking, kStopping };

  void Run();
  void Do(const std::function<void()>& work);

  std::atomic<int> state_ = kIdle;  // the owner leaves kIdle, the thread comes back to it
  const std::function<void()>* work_ = nullptr;  // while kWorking
  std::exception_ptr failure_;                   // of the latest work
  std::thread thread_;                           // last: it uses the above
};

// Runs `work` on the calling thread's BackThread and waits for its end; in place where there is
// none. An exception of its comes out here.
void RunInBack(const std::function<void()>& work);

// The same for a value. `work` only computes: it takes no lock that others take, and tells nobody.
template <class Work>
std::invoke_result_t<Work&> InBack(Work work) {
  std::optional<std::invoke_result_t<Work&>> result;
  RunInBack([&] { result.emplace(work()); });
  return *std::move(result);
}

}  // namespace penstock::router
