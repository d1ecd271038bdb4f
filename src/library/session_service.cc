#include "nowcalls/session_service.h"

#include <utility>

#include "library/front.h"

namespace nowcalls {

SessionService::SessionService(std::shared_ptr<library::Front> front) : front_(std::move(front)) {}

SessionService::~SessionService() {
  // The loop cannot wait for itself: in a callback it ends behind the callback. Tokens whose
  // release has no answer in time end with their hold.
  constexpr Milliseconds kLastWait{1000};
  if (front_->OnLoopThread()) {
    front_->EndBehindCallback();
  } else {
    (void)Close(kLastWait);
  }
}

void SessionService::AcquireAsync(FlowId flow, const AcquireOptions& options,
                                  std::function<void(Acquired)> done) {
  front_->Acquire(flow, options, std::move(done));
}

void SessionService::AcquireAllAsync(const std::vector<FlowDemand>& demands,
                                     const AcquireOptions& options,
                                     std::function<void(AllAcquired)> done) {
  front_->AcquireAll(demands, options, std::move(done));
}

void SessionService::RequestAsync(FlowId flow, const RequestOptions& options,
                                  std::function<void(Passed)> done) {
  front_->Request(flow, options, std::move(done));
}

void SessionService::RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                                       const RequestOptions& options,
                                       std::function<void(Passed)> done) {
  front_->RequestParam(flow, values, options, std::move(done));
}

Acquired SessionService::Acquire(FlowId flow, const AcquireOptions& options) {
  return front_->AcquireAndWait(flow, options);
}

AllAcquired SessionService::AcquireAll(const std::vector<FlowDemand>& demands,
                                       const AcquireOptions& options) {
  return front_->AcquireAllAndWait(demands, options);
}

Passed SessionService::Request(FlowId flow, const RequestOptions& options) {
  return front_->RequestAndWait(flow, options);
}

Passed SessionService::RequestParam(FlowId flow, const std::vector<Value>& values,
                                    const RequestOptions& options) {
  return front_->RequestParamAndWait(flow, values, options);
}

bool SessionService::OnOwnThread() const { return front_->OnLoopThread(); }

ClientStats SessionService::stats() const { return front_->stats(); }

Permit SessionService::Adopt(TokenId token, FlowId flow, KeepMode keep) {
  return front_->Adopt(token, flow, keep);
}

Status SessionService::Close(Milliseconds timeout) { return front_->Close(timeout); }

}  // namespace nowcalls
