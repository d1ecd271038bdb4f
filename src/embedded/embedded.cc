#include "nowcalls/embedded.h"

#include <utility>

#include "base/text.h"
#include "embedded/engine_front.h"

namespace nowcalls {

class Embedded::Impl {
 public:
  explicit Impl(std::shared_ptr<embedded::EngineFront> f) : front(std::move(f)) {}
  const std::shared_ptr<embedded::EngineFront> front;
};

Result<std::unique_ptr<Embedded>> Embedded::Open(const EmbeddedOptions& options) {
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(options.name_space).WithContext("name_space"));
  NOWCALLS_RETURN_IF_ERROR(CheckClientId(options.client_id).WithContext("client_id"));
  if (options.timeout < Milliseconds(1)) {
    return Status::InvalidArgument("timeout must be at least 1 ms");
  }
  Result<std::shared_ptr<embedded::EngineFront>> front = embedded::EngineFront::Open(options);
  if (!front.ok()) return front.status();
  return std::unique_ptr<Embedded>(new Embedded(std::make_shared<Impl>(*std::move(front))));
}

Embedded::Embedded(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Embedded::~Embedded() {
  // A ledger that hangs must not hang its program for ever.
  (void)impl_->front->Front::Close(Milliseconds(5000));
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

}  // namespace nowcalls
