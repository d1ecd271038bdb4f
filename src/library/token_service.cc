#include "nowcalls/token_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "library/refusals.h"

namespace nowcalls {
namespace {

// The answer of ask(done) as a future. Costs a promise and a change of threads.
template <typename T, typename Ask>
std::future<T> FutureOf(Ask&& ask) {
  // A std::function is copied, which a promise cannot be.
  auto promise = std::make_shared<std::promise<T>>();
  std::future<T> future = promise->get_future();
  ask([promise](T answer) { promise->set_value(std::move(answer)); });
  return future;
}

template <typename T, typename Ask>
T Await(bool would_hang, Ask&& ask) {
  return would_hang ? library::MustNotWait<T>() : FutureOf<T>(std::forward<Ask>(ask)).get();
}

}  // namespace

TokenService::~TokenService() = default;

std::future<Acquired> TokenService::AcquireFuture(FlowId flow, const AcquireOptions& options) {
  return FutureOf<Acquired>([&](auto done) { AcquireAsync(flow, options, std::move(done)); });
}

std::future<AllAcquired> TokenService::AcquireAllFuture(const std::vector<FlowDemand>& demands,
                                                        const AcquireOptions& options) {
  return FutureOf<AllAcquired>(
      [&](auto done) { AcquireAllAsync(demands, options, std::move(done)); });
}

std::future<Passed> TokenService::RequestFuture(FlowId flow, const RequestOptions& options) {
  return FutureOf<Passed>([&](auto done) { RequestAsync(flow, options, std::move(done)); });
}

std::future<Passed> TokenService::RequestParamFuture(FlowId flow, const std::vector<Value>& values,
                                                     const RequestOptions& options) {
  return FutureOf<Passed>(
      [&](auto done) { RequestParamAsync(flow, values, options, std::move(done)); });
}

Acquired TokenService::Acquire(FlowId flow, const AcquireOptions& options) {
  return Await<Acquired>(OnOwnThread(),
                         [&](auto done) { AcquireAsync(flow, options, std::move(done)); });
}

AllAcquired TokenService::AcquireAll(const std::vector<FlowDemand>& demands,
                                     const AcquireOptions& options) {
  return Await<AllAcquired>(OnOwnThread(),
                            [&](auto done) { AcquireAllAsync(demands, options, std::move(done)); });
}

Passed TokenService::Request(FlowId flow, const RequestOptions& options) {
  return Await<Passed>(OnOwnThread(),
                       [&](auto done) { RequestAsync(flow, options, std::move(done)); });
}

Passed TokenService::RequestParam(FlowId flow, const std::vector<Value>& values,
                                  const RequestOptions& options) {
  return Await<Passed>(
      OnOwnThread(), [&](auto done) { RequestParamAsync(flow, values, options, std::move(done)); });
}

Hold::~Hold() = default;

Milliseconds Hold::valid_for() const {
  if (lost()) return Milliseconds(0);
  return valid_until() == Milliseconds::max()
             ? Milliseconds::max()
             : std::max(Milliseconds(0), valid_until() - Milliseconds(BoottimeMs()));
}

Released Hold::ReleaseAndWait(CallOutcome outcome) {
  // On the service's own thread the release is still sent, but its answer cannot be waited for.
  if (!OnOwnThread()) {
    return Await<Released>(false, [&](auto done) { Release(outcome, std::move(done)); });
  }
  Release(outcome, {});
  return library::MustNotWait<Released>();
}

Kept Hold::KeepAndWait() {
  return Await<Kept>(OnOwnThread(), [&](auto done) { Keep(std::move(done)); });
}

Released Permit::Release(CallOutcome outcome) {
  const std::shared_ptr<Hold> hold = std::exchange(hold_, nullptr);
  if (hold == nullptr) {
    Released released;
    released.outcome = Outcome::kOk;
    return released;
  }
  return hold->ReleaseAndWait(outcome);
}

void Permit::ReleaseAsync(CallOutcome outcome, std::function<void(Released)> done) {
  const std::shared_ptr<Hold> hold = std::exchange(hold_, nullptr);
  if (hold != nullptr) return hold->Release(outcome, std::move(done));
  if (!done) return;
  Released released;
  released.outcome = Outcome::kOk;
  done(std::move(released));
}

Kept Permit::Keep() {
  if (hold_ == nullptr) {
    Kept kept;
    kept.outcome = Outcome::kBadRequest;
    kept.message = "the permit holds no token";
    return kept;
  }
  return hold_->KeepAndWait();
}

void Permit::KeepAsync(std::function<void(Kept)> done) {
  if (hold_ != nullptr) return hold_->Keep(std::move(done));
  Kept kept;
  kept.outcome = Outcome::kBadRequest;
  kept.message = "the permit holds no token";
  if (done) done(std::move(kept));
}

}  // namespace nowcalls
