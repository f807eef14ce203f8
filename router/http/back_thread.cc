#include "router/http/back_thread.h"

#include "common/thread_name.h"
#include "common/thread_priority.h"

namespace penstock::router {
namespace {

thread_local BackThread* own = nullptr;

}  // namespace

BackThread::BackThread() : thread_([this] { Run(); }) { own = this; }

BackThread::~BackThread() {
  own = nullptr;
  state_ = kStopping;
  state_.notify_one();
  thread_.join();
}

void BackThread::Run() {
  NameThread("back");
  StepBack();
  while (true) {
    state_.wait(kIdle);
    if (state_ == kStopping) return;
    try {
      (*work_)();
    } catch (...) {
      failure_ = std::current_exception();
    }
    state_ = kIdle;
    state_.notify_one();
  }
}

void BackThread::Do(const std::function<void()>& work) {
  work_ = &work;
  state_ = kWorking;
  state_.notify_one();
  state_.wait(kWorking);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void RunInBack(const std::function<void()>& work) {
  if (own == nullptr) return work();
  own->Do(work);
}

}  // namespace penstock::router
