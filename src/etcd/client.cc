#include "etcd/client.h"

#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "etcd/etcd.grpc.pb.h"
#include "etcd/requests.h"

namespace nowcalls::etcd {
namespace {

constexpr int kConnectMsMax = 1'000;
// Of a call; then it is the next endpoint's turn, and a connection goes on in the next call.
constexpr int64_t kAwaitConnectionMsMax = 250;
constexpr int kAnswerBytesMax = 64 * 1024 * 1024;

std::shared_ptr<grpc::Channel> MakeChannel(const cluster::EtcdOptions& options,
                                           const HostPort& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kAnswerBytesMax);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMsMax);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kConnectMsMax);
  // Channels to one address do not share a connection that hangs.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls) {
    credentials = grpc::SslCredentials({.pem_root_certs = options.ca,
                                        .pem_private_key = options.key,
                                        .pem_cert_chain = options.certificate});
  }
  return grpc::CreateCustomChannel(endpoint.ToString(), credentials, arguments);
}

// gRPC writes about broken connections to stderr, in a form of its own. Statuses tell the same.
void KeepGrpcQuiet() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

gpr_timespec In(int64_t ms) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ms, GPR_TIMESPAN));
}

void SetDeadline(grpc::ClientContext* context, int64_t ms) { context->set_deadline(In(ms)); }

// Only a thread that waits moves a connection on: a call on one that is not ready fails at once.
bool IsConnected(const std::shared_ptr<grpc::Channel>& channel, int64_t ms_max) {
  if (channel->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return true;
  return channel->WaitForConnected(In(std::min(ms_max, kAwaitConnectionMsMax)));
}

}  // namespace

struct Client::Impl {
  struct Endpoint {
    std::string name;
    std::shared_ptr<grpc::Channel> channel;
  };

  explicit Impl(cluster::EtcdOptions given) : options(std::move(given)) {
    NOWCALLS_CHECK(!options.endpoints.empty());
    KeepGrpcQuiet();
    for (const HostPort& address : options.endpoints) {
      endpoints.push_back({address.ToString(), MakeChannel(options, address)});
    }
  }

  // Asks `call` of the endpoint whose turn it is; after a failure it is that of the next.
  template <typename Call>
  Status Ask(const Call& call) {
    const size_t at = current.load();
    const Endpoint& endpoint = endpoints[at % endpoints.size()];
    Status status = AskOf(endpoint, call);
    const bool answered = status.ok() || status.code() == StatusCode::kNotFound ||
                          status.code() == StatusCode::kInvalidArgument;
    size_t expected = at;
    if (!answered) current.compare_exchange_strong(expected, at + 1);
    return status;
  }

  // The token of a user ends after a while, and with a restart of etcd: then it asks for another.
  template <typename Call>
  Status AskOf(const Endpoint& endpoint, const Call& call) {
    if (!IsConnected(endpoint.channel, options.answer_ms_max)) {
      return Status::Unavailable("etcd at " + endpoint.name + " cannot be reached");
    }
    for (bool again = false;; again = true) {
      grpc::ClientContext context;
      SetDeadline(&context, options.answer_ms_max);
      if (!options.user.empty()) {
        Result<std::string> known = Token(endpoint);
        if (!known.ok()) return known.status();
        context.AddMetadata("token", *known);
      }
      const grpc::Status status = call(endpoint.channel, &context);
      if (options.user.empty() || again || !IsOldToken(status)) {
        return StatusOf(status, endpoint.name);
      }
      const std::lock_guard lock(mutex);
      token.clear();
    }
  }

  // Two threads may ask at once: neither may wait for the other's answer.
  Result<std::string> Token(const Endpoint& endpoint) {
    {
      const std::lock_guard lock(mutex);
      if (!token.empty()) return token;
    }
    grpc::ClientContext context;
    SetDeadline(&context, options.answer_ms_max);
    etcdserverpb::AuthenticateRequest request;
    request.set_name(options.user);
    request.set_password(options.password);
    etcdserverpb::AuthenticateResponse response;
    const grpc::Status status =
        etcdserverpb::Auth::NewStub(endpoint.channel)->Authenticate(&context, request, &response);
    if (!status.ok()) return StatusOf(status, endpoint.name);
    const std::lock_guard lock(mutex);
    token = response.token();
    return token;
  }

  // False: EndWait was called.
  bool BeginWait(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex);
    if (std::exchange(end_wait, false)) return false;
    waiting = context;
    return true;
  }
  void FinishWait() {
    const std::lock_guard lock(mutex);
    waiting = nullptr;
    end_wait = false;
  }

  const cluster::EtcdOptions options;
  std::vector<Endpoint> endpoints;
  std::atomic<size_t> current = 0;
  std::mutex mutex;
  std::string token;                       // Guarded by mutex, as are the next two.
  grpc::ClientContext* waiting = nullptr;  // Of AwaitChange.
  bool end_wait = false;
};

Client::Client(cluster::EtcdOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Client::~Client() = default;

Result<cluster::TxnReply> Client::Commit(const cluster::Txn& txn) {
  const etcdserverpb::TxnRequest request = RequestOf(txn);
  etcdserverpb::TxnResponse response;
  NOWCALLS_RETURN_IF_ERROR(impl_->Ask([&](const auto& channel, grpc::ClientContext* context) {
    response.Clear();
    return etcdserverpb::KV::NewStub(channel)->Txn(context, request, &response);
  }));
  return ReplyOf(response);
}

Result<cluster::LeaseTime> Client::Grant(int64_t ttl_ms) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl((ttl_ms + 999) / 1'000);
  etcdserverpb::LeaseGrantResponse response;
  NOWCALLS_RETURN_IF_ERROR(impl_->Ask([&](const auto& channel, grpc::ClientContext* context) {
    return etcdserverpb::Lease::NewStub(channel)->LeaseGrant(context, request, &response);
  }));
  return cluster::LeaseTime{.id = response.id(), .ttl_ms = response.ttl() * 1'000};
}

Result<cluster::LeaseTime> Client::Renew(int64_t lease) {
  etcdserverpb::LeaseKeepAliveResponse response;
  NOWCALLS_RETURN_IF_ERROR(impl_->Ask([&](const auto& channel, grpc::ClientContext* context) {
    const auto stream = etcdserverpb::Lease::NewStub(channel)->LeaseKeepAlive(context);
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    const bool answered = stream->Write(request) && stream->Read(&response);
    if (!answered) return stream->Finish();
    // One answer is all that is wanted of this stream.
    context->TryCancel();
    stream->Finish();
    return grpc::Status::OK;
  }));
  if (response.ttl() <= 0) return Status::NotFound("the lease in etcd is over");
  return cluster::LeaseTime{.id = lease, .ttl_ms = response.ttl() * 1'000};
}

Status Client::Revoke(int64_t lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  Status status = impl_->Ask([&](const auto& channel, grpc::ClientContext* context) {
    etcdserverpb::LeaseRevokeResponse response;
    return etcdserverpb::Lease::NewStub(channel)->LeaseRevoke(context, request, &response);
  });
  return status.code() == StatusCode::kNotFound ? Status() : status;
}

Status Client::Compact(int64_t revision) {
  etcdserverpb::CompactionRequest request;
  request.set_revision(revision);
  return impl_->Ask([&](const auto& channel, grpc::ClientContext* context) {
    etcdserverpb::CompactionResponse response;
    grpc::Status answer = etcdserverpb::KV::NewStub(channel)->Compact(context, request, &response);
    // etcd has the same code for a revision that is to come.
    const bool before = answer.error_code() == grpc::StatusCode::OUT_OF_RANGE &&
                        answer.error_message().find("has been compacted") != std::string::npos;
    return before ? grpc::Status::OK : answer;
  });
}

void Client::AwaitChange(const std::string& key, int64_t revision, int64_t wait_ms) {
  const Status ignored = impl_->Ask([&](const auto& channel, grpc::ClientContext* context) {
    SetDeadline(context, wait_ms);
    if (!impl_->BeginWait(context)) return grpc::Status::OK;
    const auto stream = etcdserverpb::Watch::NewStub(channel)->Watch(context);
    etcdserverpb::WatchRequest request;
    request.mutable_create_request()->set_key(key);
    request.mutable_create_request()->set_start_revision(revision + 1);
    stream->Write(request);
    etcdserverpb::WatchResponse response;
    while (stream->Read(&response)) {
      if (!response.canceled() && response.events_size() == 0) continue;
      context->TryCancel();
      break;
    }
    grpc::Status status = stream->Finish();
    impl_->FinishWait();
    const bool over = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                      status.error_code() == grpc::StatusCode::CANCELLED;
    return over ? grpc::Status::OK : status;
  });
}

void Client::EndWait() {
  const std::lock_guard lock(impl_->mutex);
  impl_->end_wait = true;
  if (impl_->waiting != nullptr) impl_->waiting->TryCancel();
}

}  // namespace nowcalls::etcd
