// Front: calls of any thread, and the loop that tells their answers.
//
// Happy path: a thread asks under the mutex and flushes; the loop takes the answer in, and runs the
// callback without the mutex. A blocking call waits in WaitFor and is told within the session.
//
// Failure modes:
//   forked child         each member returns at once: no loop, and the mutex may be locked for ever
//   wait in a callback   refused, since the loop would wait for itself
//   callback throws      caught and logged
//   asked after Close    told on the asking thread, by DeliverLast
#include "library/front.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "library/instance.h"
#include "library/refusals.h"

namespace nowcalls::library {
namespace {

using client::HeldPtr;

constexpr char kClosed[] = "the client is closed";

// A permit's token. It does not own the front: a permit may outlive its client.
class HeldPermit final : public Hold {
 public:
  HeldPermit(std::weak_ptr<Front> front, HeldPtr held)
      : Hold(held->grant), front_(std::move(front)), held_(std::move(held)) {}

  void Release(CallOutcome outcome, std::function<void(Released)> done) override {
    if (const auto front = front_.lock()) return front->Release(held_, outcome, std::move(done));
    Released released;
    released.message = "the client is gone; its server takes the token back";
    released.lost = lost();
    if (done) done(std::move(released));
  }
  void Keep(std::function<void(Kept)> done) override {
    if (const auto front = front_.lock()) return front->Keep(held_, std::move(done));
    Kept kept;
    kept.message = "the client is gone";
    if (done) done(std::move(kept));
  }
  Released ReleaseAndWait(CallOutcome outcome) override {
    const auto front = front_.lock();
    if (front == nullptr || front->OnLoopThread()) return Hold::ReleaseAndWait(outcome);
    return front->ReleaseAndWait(held_, outcome);
  }
  Kept KeepAndWait() override {
    if (const auto front = front_.lock()) return front->KeepAndWait(held_);
    return Hold::KeepAndWait();
  }
  bool lost() const override { return held_->IsLost(BoottimeMs()); }
  std::string lost_reason() const override { return lost() ? held_->LostReason() : std::string(); }
  Milliseconds valid_until() const override {
    const int64_t until_ms = held_->validity.until_ms();
    return until_ms == INT64_MAX ? Milliseconds::max() : Milliseconds(until_ms);
  }
  bool OnOwnThread() const override {
    const auto front = front_.lock();
    return front != nullptr && front->OnLoopThread();
  }

 private:
  const std::weak_ptr<Front> front_;
  const HeldPtr held_;
};

std::shared_ptr<client::RateCall> NewRequest(FlowId flow, const std::vector<Value>* values,
                                             const RequestOptions& options,
                                             std::function<void(Passed)> done) {
  auto call = std::make_shared<client::RateCall>();
  call->flow = flow;
  call->by_value = values != nullptr;
  if (values != nullptr) call->values = *values;
  call->options = options;
  call->tell = std::move(done);
  return call;
}

template <typename T>
void TellInherited(const std::function<void(T)>& done) {
  if (done) done(Inherited<T>());
}

}  // namespace

Front::Front(const ClientOptions& options)
    : options_(options),
      session_(options, Prng(RandomBits128()[0]), BoottimeMs(),
               // Without an instance hello rejoins the session of the last such process.
               options.rejoin ? 0 : ProcessInstance()) {}

std::shared_ptr<client::AcquireCall> Front::NewAcquire(FlowId flow, const AcquireOptions& options,
                                                       std::function<void(Acquired)> done) {
  auto call = std::make_shared<client::AcquireCall>();
  call->demands.push_back({.flow = flow, .count = options.count, .param = options.param});
  call->options = options;
  call->tell = [this, done = std::move(done)](Answer answer, std::vector<HeldPtr> held) {
    Acquired acquired;
    static_cast<Answer&>(acquired) = std::move(answer);
    if (!held.empty()) acquired.permit = PermitOf(held.front());
    if (done) done(std::move(acquired));
  };
  return call;
}

std::shared_ptr<client::AcquireCall> Front::NewAcquireAll(const std::vector<FlowDemand>& demands,
                                                          const AcquireOptions& options,
                                                          std::function<void(AllAcquired)> done) {
  auto call = std::make_shared<client::AcquireCall>();
  call->all = true;
  call->demands = demands;
  call->options = options;
  call->tell = [this, told = call.get(), done = std::move(done)](Answer answer,
                                                                 const std::vector<HeldPtr>& held) {
    AllAcquired acquired;
    static_cast<Answer&>(acquired) = std::move(answer);
    acquired.wait = told->wait;
    for (const HeldPtr& token : held) {
      acquired.permits.push_back(token == nullptr ? Permit() : PermitOf(token));
    }
    if (done) done(std::move(acquired));
  };
  return call;
}

void Front::Acquire(FlowId flow, const AcquireOptions& options,
                    std::function<void(Acquired)> done) {
  if (inherited()) return TellInherited(done);
  const auto call = NewAcquire(flow, options, std::move(done));
  Lock lock(mutex_);
  session_.Acquire(call, BoottimeMs());
  Asked(&lock);
}

void Front::AcquireAll(const std::vector<FlowDemand>& demands, const AcquireOptions& options,
                       std::function<void(AllAcquired)> done) {
  if (inherited()) return TellInherited(done);
  const auto call = NewAcquireAll(demands, options, std::move(done));
  Lock lock(mutex_);
  session_.Acquire(call, BoottimeMs());
  Asked(&lock);
}

void Front::Request(FlowId flow, const RequestOptions& options, std::function<void(Passed)> done) {
  if (inherited()) return TellInherited(done);
  const auto call = NewRequest(flow, nullptr, options, std::move(done));
  Lock lock(mutex_);
  session_.Request(call, BoottimeMs());
  Asked(&lock);
}

void Front::RequestParam(FlowId flow, const std::vector<Value>& values,
                         const RequestOptions& options, std::function<void(Passed)> done) {
  if (inherited()) return TellInherited(done);
  const auto call = NewRequest(flow, &values, options, std::move(done));
  Lock lock(mutex_);
  session_.Request(call, BoottimeMs());
  Asked(&lock);
}

template <typename T, typename Ask>
T Front::Await(Ask&& ask) {
  if (inherited()) return Inherited<T>();
  if (OnLoopThread()) return MustNotWait<T>();
  // The session tells a blocking call under the mutex, so the answer may live on this stack.
  T answer;
  Waiter waiter;
  Lock lock(mutex_);
  ask([&answer, &waiter](T told) {
    answer = std::move(told);
    waiter.told = true;
    waiter.changed.notify_one();
  });
  Asked(&lock, /*waits=*/true);
  while (!waiter.told) WaitFor(&waiter, &lock);
  return answer;
}

Acquired Front::AcquireAndWait(FlowId flow, const AcquireOptions& options) {
  // The caller's on_lost is destroyed last, without the mutex: its destructor is user code.
  std::shared_ptr<client::AcquireCall> call;
  auto acquired = Await<Acquired>([&](auto done) {
    call = NewAcquire(flow, options, std::move(done));
    call->blocks = true;
    session_.Acquire(call, BoottimeMs());
  });
  if (call != nullptr) call->options.on_lost = nullptr;
  return acquired;
}

AllAcquired Front::AcquireAllAndWait(const std::vector<FlowDemand>& demands,
                                     const AcquireOptions& options) {
  std::shared_ptr<client::AcquireCall> call;
  auto acquired = Await<AllAcquired>([&](auto done) {
    call = NewAcquireAll(demands, options, std::move(done));
    call->blocks = true;
    session_.Acquire(call, BoottimeMs());
  });
  if (call != nullptr) call->options.on_lost = nullptr;
  return acquired;
}

Passed Front::RequestAndWait(FlowId flow, const RequestOptions& options) {
  return Await<Passed>([&](auto done) {
    const auto call = NewRequest(flow, nullptr, options, std::move(done));
    call->blocks = true;
    session_.Request(call, BoottimeMs());
  });
}

Passed Front::RequestParamAndWait(FlowId flow, const std::vector<Value>& values,
                                  const RequestOptions& options) {
  return Await<Passed>([&](auto done) {
    const auto call = NewRequest(flow, &values, options, std::move(done));
    call->blocks = true;
    session_.Request(call, BoottimeMs());
  });
}

Released Front::ReleaseAndWait(const HeldPtr& held, CallOutcome outcome) {
  client::Held::OnLost unused;
  return Await<Released>([&](auto done) {
    unused = held->TakeOnLost();
    session_.Release(held, outcome, std::move(done), BoottimeMs(), /*blocks=*/true);
  });
}

Kept Front::KeepAndWait(const HeldPtr& held) {
  return Await<Kept>(
      [&](auto done) { session_.Keep(held, std::move(done), BoottimeMs(), /*blocks=*/true); });
}

Permit Front::Adopt(TokenId token, FlowId flow, KeepMode keep) {
  if (inherited()) return {};
  const Lock lock(mutex_);
  return PermitOf(session_.Adopt({.flow = flow, .token = token}, keep, BoottimeMs()));
}

void Front::Release(const HeldPtr& held, CallOutcome outcome, std::function<void(Released)> done) {
  if (inherited()) return TellInherited(done);
  // Declared before the lock, so destroyed after it is released.
  client::Held::OnLost unused;
  Lock lock(mutex_);
  unused = held->TakeOnLost();
  session_.Release(held, outcome, std::move(done), BoottimeMs());
  Asked(&lock);
}

void Front::Keep(const HeldPtr& held, std::function<void(Kept)> done) {
  if (inherited()) return TellInherited(done);
  Lock lock(mutex_);
  session_.Keep(held, std::move(done), BoottimeMs());
  Asked(&lock);
}

Permit Front::PermitOf(const HeldPtr& held) {
  return Permit(std::make_shared<HeldPermit>(weak_from_this(), held));
}

ClientStats Front::stats() const {
  if (inherited()) return {.why_offline = kInherited};
  const std::lock_guard lock(mutex_);
  return session_.stats();
}

Status Front::WaitConnected(Milliseconds timeout) {
  if (inherited()) return Status::FailedPrecondition(kInherited);
  if (OnLoopThread()) return Status::FailedPrecondition(kMustNotWait);
  Lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return session_.ready() || stopping_; });
  if (stopping_) return Status::Unavailable(kClosed);
  if (session_.ready()) return Status::Ok();
  std::string why = session_.stats().why_offline;
  return session_.denied() ? Status::PermissionDenied(std::move(why))
                           : Status::Unavailable(std::move(why));
}

// The destructor calls it too. In a forked child the front stays in memory: the reference of the
// missing loop is never given back.
Status Front::Close(Milliseconds timeout) {
  if (inherited()) return Status::FailedPrecondition(kInherited);
  if (OnLoopThread()) return Status::FailedPrecondition(kMustNotWait);
  Lock lock(mutex_);
  // 1. End calls; give releases and cancels their time.
  session_.Close(BoottimeMs());
  Asked(&lock);
  const bool settled =
      stopped_ || changed_.wait_for(lock, timeout, [this] { return session_.settled(); });
  // 2. Stop the loop, which tells the calls that are left.
  stopping_ = true;
  changed_.notify_all();
  Wake();
  std::thread thread = std::move(thread_);
  lock.unlock();
  if (thread.joinable()) thread.join();
  lock.lock();
  changed_.wait(lock, [this] { return stopped_; });  // Another thread that closes may have joined.
  if (settled) return Status::Ok();
  return Status::OutcomeUnknown(
      "some releases have no answer; the server takes the tokens back after their hold");
}

void Front::EndBehindCallback() {
  if (inherited()) return;
  const Lock lock(mutex_);
  session_.Close(BoottimeMs());
  Flush(/*waits=*/false);
  stopping_ = true;
  if (thread_.joinable()) thread_.detach();
}

// The loop.

Status Front::StartLoop() {
  Result<std::thread> thread = StartQuietThread([self = shared_from_this()] {
    self->loop_id_ = std::this_thread::get_id();
    self->RunLoop();
    self->EndLoop();
  });
  if (!thread.ok()) return thread.status();
  thread_ = *std::move(thread);
  return Status::Ok();
}

void Front::EndLoop() {
  Lock lock(mutex_);
  // Callbacks first, while this thread still counts as the loop: a wait in them is refused.
  session_.Abandon(kClosed, BoottimeMs());
  DeliverLast(&lock);
  loop_id_ = std::thread::id();  // The system gives it to a thread of the program.
  stopped_ = true;
  changed_.notify_all();
}

// Runs callbacks without a loop, on one thread at a time for all. A callback may ask further calls:
// they wait here for their turn, not on its stack.
void Front::DeliverLast(Lock* lock) {
  constexpr int kRoundsMax = 1000;  // A callback that asks again for ever is not told for ever.
  if (std::exchange(delivering_, true)) return;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (!Deliver(lock)) break;
  }
  delivering_ = false;
}

void Front::Asked(Lock* lock, bool waits) {
  if (stopped_) return DeliverLast(lock);
  constexpr uint32_t kAskedPerFlush = 16;
  if (OnLoopThread()) {
    // The loop flushes behind its callbacks. Of many, some leave earlier, so that the server works.
    if (++asked_since_flush_ % kAskedPerFlush == 0) Flush(/*waits=*/false);
    return;
  }
  // Send on this thread. The loop wakes only for an event, or if it would oversleep.
  Flush(waits);
  const bool has_news = session_.has_events() || session_.Wakeup() < sleeps_until_ms_;
  if (sleeping_ && has_news) Wake();
}

int64_t Front::SleepUntil(int64_t now_ms) {
  // No call that names no timeout of its own then needs to wake the loop for its deadline.
  sleeps_until_ms_ = std::min(session_.Wakeup(), now_ms + options_.timeout.count());
  sleeping_ = true;
  return sleeps_until_ms_;
}

bool Front::Deliver(Lock* lock) {
  if (!session_.has_events()) return false;
  client::ClientSession::Events events = session_.TakeEvents();
  lock->unlock();
  Run(std::move(events));
  lock->lock();
  return true;
}

// Order: log lines, lost tokens, answers. By value, so that closures are destroyed before the
// caller
// has the mutex again.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Front::Run(client::ClientSession::Events events) {
  for (const auto& [level, line] : events.lines) Log(level, line);
  for (const HeldPtr& held : events.lost) {
    const client::Held::OnLost on_lost = std::exchange(held->on_lost, nullptr);
    if (on_lost) RunCallback("on_lost", [&] { on_lost(held->grant, held->lost_reason); });
  }
  for (const client::CallPtr& call : events.finished) {
    RunCallback("the callback of a call", [&] { call->Notify(); });
  }
}

template <typename Callback>
void Front::RunCallback(const char* name, Callback&& callback) {
  try {
    callback();
  } catch (const std::exception& thrown) {
    Log(LogLevel::kWarning, std::string(name) + " has thrown: " + thrown.what());
  } catch (...) {
    Log(LogLevel::kWarning, std::string(name) + " has thrown what is no std::exception");
  }
}

void Front::Log(LogLevel level, const std::string& line) const {
  try {
    if (options_.log) options_.log(level, line);
  } catch (...) {  // Nobody is left to be told.
  }
}

}  // namespace nowcalls::library
