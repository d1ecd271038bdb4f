#include "nowcalls/embedded.h"

#include <utility>

#include "base/text.h"
#include "embedded/engine_front.h"

namespace nowcalls {
namespace {

constexpr Milliseconds kTimeoutMax{3'600'000};
constexpr Milliseconds kLastWait{5000};

}  // namespace

class Embedded::Impl {
 public:
  explicit Impl(std::shared_ptr<embedded::EngineFront> f) : front(std::move(f)) {}
  const std::shared_ptr<embedded::EngineFront> front;
};

Result<std::unique_ptr<Embedded>> Embedded::Open(const EmbeddedOptions& options) {
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(options.name_space).WithContext("name_space"));
  NOWCALLS_RETURN_IF_ERROR(CheckClientId(options.client_id).WithContext("client_id"));
  if (options.timeout < Milliseconds(1) || options.timeout > kTimeoutMax) {
    return Status::InvalidArgument("timeout must be 1 ms to 1 h");
  }
  Result<std::shared_ptr<embedded::EngineFront>> front = embedded::EngineFront::Open(options);
  if (!front.ok()) return front.status();
  return std::unique_ptr<Embedded>(new Embedded(std::make_shared<Impl>(*std::move(front))));
}

Embedded::Embedded(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Embedded::~Embedded() {
  // Releases that get no answer end with the hold of their tokens.
  (void)impl_->front->Front::Close(kLastWait);
}

Result<uint64_t> Embedded::LoadRules(std::string_view name_space, std::string_view json) {
  return impl_->front->LoadRules(name_space, json);
}

void Embedded::AcquireAsync(FlowId flow, const AcquireOptions& options,
                            std::function<void(Acquired)> done) {
  impl_->front->Acquire(flow, options, std::move(done));
}

void Embedded::AcquireAllAsync(const std::vector<FlowDemand>& demands,
                               const AcquireOptions& options,
                               std::function<void(AllAcquired)> done) {
  impl_->front->AcquireAll(demands, options, std::move(done));
}

void Embedded::RequestAsync(FlowId flow, const RequestOptions& options,
                            std::function<void(Passed)> done) {
  impl_->front->Request(flow, options, std::move(done));
}

void Embedded::RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                                 const RequestOptions& options, std::function<void(Passed)> done) {
  impl_->front->RequestParam(flow, values, options, std::move(done));
}

bool Embedded::OnOwnThread() const { return impl_->front->OnLoopThread(); }

Acquired Embedded::Acquire(FlowId flow, const AcquireOptions& options) {
  return impl_->front->AcquireAndWait(flow, options);
}

AllAcquired Embedded::AcquireAll(const std::vector<FlowDemand>& demands,
                                 const AcquireOptions& options) {
  return impl_->front->AcquireAllAndWait(demands, options);
}

Passed Embedded::Request(FlowId flow, const RequestOptions& options) {
  return impl_->front->RequestAndWait(flow, options);
}

Passed Embedded::RequestParam(FlowId flow, const std::vector<Value>& values,
                              const RequestOptions& options) {
  return impl_->front->RequestParamAndWait(flow, values, options);
}

}  // namespace nowcalls
