#include "nowcalls/client.h"

#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "base/host_port.h"
#include "base/text.h"
#include "library/tcp_front.h"

namespace nowcalls {
namespace {

constexpr Milliseconds kTimeoutMax{3'600'000};
constexpr Milliseconds kLastWait{1000};

// HOST-PROCESS-CHANCE, for an operator who reads a listing.
std::string MadeUpClientId() {
  char host[64] = {};
  gethostname(host, sizeof(host) - 1);
  std::string id = CheckName(host, sizeof(host)).ok() && host[0] != '@' ? host : "client";
  return id + "-" + std::to_string(getpid()) + "-" +
         std::to_string(RandomBits128()[0] % 1'000'000'000);
}

Status CheckOptions(const ClientOptions& options) {
  if (options.addresses.empty()) return Status::InvalidArgument("addresses is empty");
  for (const std::string& address : options.addresses) {
    const Result<HostPort> peer = ParseHostPort(address);
    if (!peer.ok()) return peer.status().WithContext("addresses");
    if (peer->port == 0) {
      return Status::InvalidArgument("addresses: " + address + ": port 0 cannot be dialled");
    }
  }
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(options.name_space).WithContext("name_space"));
  if (!options.client_id.empty()) {
    NOWCALLS_RETURN_IF_ERROR(CheckClientId(options.client_id).WithContext("client_id"));
  }
  if (options.timeout < Milliseconds(1) || options.timeout > kTimeoutMax) {
    return Status::InvalidArgument("timeout must be 1 ms to 1 h");
  }
  return Status::Ok();
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(std::shared_ptr<library::TcpFront> f) : front(std::move(f)) {}
  const std::shared_ptr<library::TcpFront> front;
};

Result<std::unique_ptr<Client>> Client::Start(const ClientOptions& options) {
  NOWCALLS_RETURN_IF_ERROR(CheckOptions(options));
  ClientOptions used = options;
  if (used.client_id.empty()) used.client_id = MadeUpClientId();
  Result<std::shared_ptr<library::TcpFront>> front = library::TcpFront::Start(used);
  if (!front.ok()) return front.status();
  return std::unique_ptr<Client>(new Client(std::make_shared<Impl>(*std::move(front))));
}

Client::Client(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() {
  // Tokens whose release has no answer end with their hold.
  (void)Close(kLastWait);
}

void Client::AcquireAsync(FlowId flow, const AcquireOptions& options,
                          std::function<void(Acquired)> done) {
  impl_->front->Acquire(flow, options, std::move(done));
}

void Client::AcquireAllAsync(const std::vector<FlowDemand>& demands, const AcquireOptions& options,
                             std::function<void(AllAcquired)> done) {
  impl_->front->AcquireAll(demands, options, std::move(done));
}

void Client::RequestAsync(FlowId flow, const RequestOptions& options,
                          std::function<void(Passed)> done) {
  impl_->front->Request(flow, options, std::move(done));
}

void Client::RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                               const RequestOptions& options, std::function<void(Passed)> done) {
  impl_->front->RequestParam(flow, values, options, std::move(done));
}

Acquired Client::Acquire(FlowId flow, const AcquireOptions& options) {
  return impl_->front->AcquireAndWait(flow, options);
}

AllAcquired Client::AcquireAll(const std::vector<FlowDemand>& demands,
                               const AcquireOptions& options) {
  return impl_->front->AcquireAllAndWait(demands, options);
}

Passed Client::Request(FlowId flow, const RequestOptions& options) {
  return impl_->front->RequestAndWait(flow, options);
}

Passed Client::RequestParam(FlowId flow, const std::vector<Value>& values,
                            const RequestOptions& options) {
  return impl_->front->RequestParamAndWait(flow, values, options);
}

bool Client::OnOwnThread() const { return impl_->front->OnLoopThread(); }

Status Client::WaitConnected(Milliseconds timeout) { return impl_->front->WaitConnected(timeout); }

ClientStats Client::stats() const { return impl_->front->stats(); }

Permit Client::Adopt(TokenId token, FlowId flow, KeepMode keep) {
  return impl_->front->Adopt(token, flow, keep);
}

Status Client::Close(Milliseconds timeout) { return impl_->front->Close(timeout); }

}  // namespace nowcalls
