// Tags for a gRPC completion queue. The thread that polls the queue calls Done when the operation
// has ended.
#pragma once

namespace penstock {

// Must outlive its operation. Done runs on the queue's thread.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual void Done(bool ok) = 0;
};

// Calls a member function of its owner, which must outlive it.
template <typename Owner>
class MemberOperation final : public Operation {
 public:
  MemberOperation(Owner& owner, void (Owner::*done)(bool)) : owner_(owner), done_(done) {}
  void Done(bool ok) override { (owner_.*done_)(ok); }

 private:
  Owner& owner_;
  void (Owner::*const done_)(bool);
};

}  // namespace penstock
