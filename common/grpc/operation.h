// What is under way in a gRPC completion queue: the tag of one operation, which the thread that
// takes the queue's events tells how it ended.
#pragma once

namespace penstock {

// Outlives what it is the tag of; Done runs on the queue's thread.
class Operation {
 public:
  virtual ~Operation() = default;
  virtual void Done(bool ok) = 0;
};

// One whose end is told to a member function of its owner, which outlives it.
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
