#include "client/blocking_client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "client/exchange.h"
#include "net/socket.h"

namespace nowcalls::client {
namespace {

using wire::ErrorCode;
using wire::Method;
using wire::OutputBuffer;

// Of a peer that never sent a byte. In brackets, since more text may follow.
constexpr char kNeverSpoke[] = " (is that a nowcalls-server?)";
constexpr char kTlsOnly[] = " before it answered (does it speak TLS only?)";

StatusCode CodeFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformed:
    case ErrorCode::kUnknownMethod:
    case ErrorCode::kBadParams:
    case ErrorCode::kHelloState:
    case ErrorCode::kUnsupported: return StatusCode::kInvalidArgument;
    case ErrorCode::kConflict: return StatusCode::kAlreadyExists;
    case ErrorCode::kOverloaded: return StatusCode::kResourceExhausted;
    case ErrorCode::kInternal: return StatusCode::kUnavailable;
    case ErrorCode::kPermission: return StatusCode::kPermissionDenied;
  }
  return StatusCode::kUnavailable;
}

Status ToStatus(const wire::RequestError& error) {
  return {CodeFor(error.code), std::string(ErrorCodeName(error.code)) + ": " + error.message};
}

// Of an older server.
bool IsUnknownMethod(const Status& status) {
  return status.message().starts_with(ErrorCodeName(ErrorCode::kUnknownMethod));
}

Status NotConnected(const net::Endpoint& peer, const Status& why) {
  switch (why.code()) {
    case StatusCode::kUnavailable:
      return Status::Unavailable("cannot reach " + peer.ToString() + ": " + why.message() +
                                 "; is nowcalls-server running there?");
    case StatusCode::kFailedPrecondition:
      return Status::Unavailable("cannot talk to " + peer.ToString() + ": " + why.message());
    case StatusCode::kPermissionDenied:
    case StatusCode::kInvalidArgument:
      return Status::PermissionDenied("cannot talk to " + peer.ToString() + ": " + why.message());
    case StatusCode::kIoError: return Status::InvalidArgument(why.message());
    default: return why;
  }
}

Result<std::string_view> Undecoded(std::string_view result) { return result; }

}  // namespace

struct BlockingClient::Impl {
  Impl(const net::Endpoint& peer_address, net::Socket connection, int64_t timeout)
      : peer(peer_address.ToString()), socket(std::move(connection)), timeout_ms(timeout) {}

  // Sends what encode(msgid, out) writes and decodes the result of the answer. `more_ms`: beyond
  // the timeout.
  template <typename Decoded, typename Encode>
  Result<Decoded> Call(Result<Decoded> (*decode)(std::string_view), Encode&& encode,
                       int64_t more_ms = 0);

  Status Send(int64_t deadline_ms);
  Result<wire::Response> Await(int64_t deadline_ms, int64_t waits_ms);
  Status NotUnderstood(const Status& why) const;
  Status Close(Status reason) {
    socket.reset();
    return reason;
  }

  std::string peer;
  std::optional<net::Socket> socket;  // None once closed.
  int64_t timeout_ms;
  Exchange exchange;
};

template <typename Decoded, typename Encode>
Result<Decoded> BlockingClient::Impl::Call(Result<Decoded> (*decode)(std::string_view),
                                           Encode&& encode, int64_t more_ms) {
  if (!socket) return Status::Unavailable("the connection to " + peer + " is closed");
  // One deadline for sending and for the answer.
  const int64_t waits_ms = timeout_ms + more_ms;
  const int64_t deadline_ms = BoottimeMs() + waits_ms;
  const Result<uint32_t> msgid = exchange.Request(encode);
  if (!msgid.ok()) return msgid.status();
  NOWCALLS_RETURN_IF_ERROR(Send(deadline_ms));
  Result<wire::Response> response = Await(deadline_ms, waits_ms);
  if (!response.ok()) return response.status();
  // A server's error keeps the connection; an answer that cannot be decoded closes it.
  if (response->error) return ToStatus(*response->error);
  Result<Decoded> decoded = decode(response->result);
  if (decoded.ok() || decoded.status().code() != StatusCode::kCorruption) return decoded;
  return Close(NotUnderstood(decoded.status()));
}

// Of an answer. A peer that never spoke the protocol has carried nothing out.
Status BlockingClient::Impl::NotUnderstood(const Status& why) const {
  if (exchange.peer_is_foreign()) {
    return Status::Unavailable("what listens at " + peer +
                               " does not look like a nowcalls-server: " + why.message() +
                               "; check HOST:PORT");
  }
  return Status::OutcomeUnknown("answer of " + peer + " was not understood: " + why.message());
}

Status BlockingClient::Impl::Send(int64_t deadline_ms) {
  // A request that was sent in part was not carried out: the error stays kUnavailable.
  Status sent = socket->Send(exchange.output()->view(), deadline_ms);
  exchange.output()->Clear();
  if (sent.ok()) return sent;
  return Close(sent.WithContext("request could not be sent to " + peer));
}

Result<wire::Response> BlockingClient::Impl::Await(int64_t deadline_ms, int64_t waits_ms) {
  for (;;) {
    Result<std::optional<wire::Response>> response = exchange.TakeResponse();
    (void)exchange.TakeLost();  // Not asked for.
    if (!response.ok()) return Close(NotUnderstood(response.status()));
    if (response->has_value()) return **std::move(response);
    std::string bytes;
    // The clock is asked each time: a peer that sends without pause must not hold the caller.
    const bool late = BoottimeMs() > deadline_ms;
    const Status received =
        late ? Status::OutcomeUnknown("late") : socket->Receive(&bytes, deadline_ms);
    if (received.code() == StatusCode::kOutcomeUnknown) {
      return Close(Status::OutcomeUnknown("no answer from " + peer + " within " +
                                          std::to_string(waits_ms) + " ms" +
                                          (exchange.peer_is_silent() ? kNeverSpoke : "")));
    }
    if (received.code() == StatusCode::kPermissionDenied) {
      return Close(received.WithContext("cannot talk to " + peer));
    }
    if (!received.ok()) {
      const bool plain = exchange.peer_is_silent() && !socket->encrypted();
      return Close(Status::OutcomeUnknown("no answer from " + peer + ": " + received.message() +
                                          (plain ? kTlsOnly : "")));
    }
    exchange.Receive(bytes);
  }
}

// Standbys of a cluster are not reached: the first that is reached serves.
Result<std::unique_ptr<BlockingClient>> BlockingClient::Connect(const ConnectOptions& options) {
  const Result<std::vector<net::Endpoint>> servers = net::ParseServers(options.address);
  if (!servers.ok()) return servers.status();
  std::string failures;
  for (const net::Endpoint& server : *servers) {
    auto client = ConnectTo(server, options);
    if (client.status().code() != StatusCode::kUnavailable) return client;
    failures += (failures.empty() ? "" : "; ") + client.status().message();
  }
  return Status::Unavailable(failures);
}

Result<std::unique_ptr<BlockingClient>> BlockingClient::ConnectTo(const net::Endpoint& peer,
                                                                  const ConnectOptions& options) {
  const int64_t connect_ms = std::min(options.connect_ms, options.timeout_ms);
  Result<net::Socket> socket = Dial(peer, options.security, BoottimeMs() + connect_ms);
  if (!socket.ok()) return NotConnected(peer, socket.status());
  std::unique_ptr<BlockingClient> client(
      new BlockingClient(std::make_unique<Impl>(peer, *std::move(socket), options.timeout_ms)));
  if (options.security.secret.empty()) return client;
  const Status identified = client->Identify(options.security.secret).status();
  // A server that knows no secrets is taken as it is.
  if (identified.ok() || IsUnknownMethod(identified)) return client;
  return identified.WithContext("cannot talk to " + peer.ToString());
}

BlockingClient::BlockingClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BlockingClient::~BlockingClient() = default;

Result<wire::IdentifyReply> BlockingClient::Identify(std::string_view secret) {
  return impl_->Call(
      wire::DecodeIdentifyReply,
      [&](uint32_t msgid, OutputBuffer* out) { wire::EncodeIdentifyRequest(msgid, secret, out); },
      kWrongSecretMs);
}

Result<wire::HelloReply> BlockingClient::Hello(std::string_view name_space,
                                               std::optional<std::string_view> client_id) {
  return impl_->Call(wire::DecodeHelloReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeHelloRequest(msgid, {.name_space = name_space, .client_id = client_id}, out);
  });
}

Result<uint64_t> BlockingClient::Ping() {
  return impl_->Call(wire::DecodeUintReply, [](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePlainRequest(msgid, Method::kPing, out);
  });
}

Result<wire::AcquireReply> BlockingClient::Acquire(const wire::AcquireParams& params) {
  return impl_->Call(wire::DecodeAcquireReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeAcquireRequest(msgid, params, out);
  });
}

Result<wire::RateReply> BlockingClient::Request(const wire::RateParams& params) {
  return impl_->Call(wire::DecodeRateReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeRateRequest(msgid, params, out);
  });
}

Result<wire::RateReply> BlockingClient::RequestParam(const wire::ValueRateParams& params,
                                                     std::span<const Param> values) {
  return impl_->Call(wire::DecodeRateReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeValueRateRequest(msgid, params, values, out);
  });
}

Result<TokenStatus> BlockingClient::Release(uint64_t token_id) {
  return impl_->Call(wire::DecodeStatusReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeTokenRequest(msgid, Method::kRelease, token_id, out);
  });
}

Result<wire::KeepReply> BlockingClient::Keep(uint64_t token_id) {
  return impl_->Call(wire::DecodeKeepReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeTokenRequest(msgid, Method::kKeep, token_id, out);
  });
}

Result<TokenStatus> BlockingClient::Reclaim(uint64_t token_id, std::string_view reason) {
  return impl_->Call(wire::DecodeStatusReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeReclaimRequest(msgid, {token_id, reason}, out);
  });
}

Result<wire::ReclaimedReply> BlockingClient::ReclaimClient(
    const wire::ReclaimClientParams& params) {
  return impl_->Call(wire::DecodeReclaimedReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeReclaimClientRequest(msgid, params, out);
  });
}

Result<wire::ReclaimedReply> BlockingClient::ReclaimFlow(const wire::ReclaimFlowParams& params) {
  return impl_->Call(wire::DecodeReclaimedReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeReclaimFlowRequest(msgid, params, out);
  });
}

Result<wire::ReclaimedReply> BlockingClient::Purge(const wire::PurgeParams& params) {
  return impl_->Call(wire::DecodeReclaimedReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePurgeRequest(msgid, params, out);
  });
}

Result<wire::DrainReply> BlockingClient::Drain(const wire::DrainParams& params) {
  return impl_->Call(wire::DecodeDrainReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeDrainRequest(msgid, params, out);
  });
}

Result<wire::ReclaimNamespaceReply> BlockingClient::ReclaimNamespace(
    const wire::ReclaimNamespaceParams& params) {
  return impl_->Call(wire::DecodeReclaimNamespaceReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeReclaimNamespaceRequest(msgid, params, out);
  });
}

Result<wire::DrainNamespaceReply> BlockingClient::DrainNamespace(
    const wire::DrainNamespaceParams& params) {
  return impl_->Call(wire::DecodeDrainNamespaceReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeDrainNamespaceRequest(msgid, params, out);
  });
}

Result<wire::BackupReply> BlockingClient::Backup(const wire::BackupParams& params) {
  return impl_->Call(wire::DecodeBackupReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeBackupRequest(msgid, params, out);
  });
}

Result<wire::BackupReply> BlockingClient::Copy() {
  return impl_->Call(wire::DecodeBackupReply, [](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePlainRequest(msgid, Method::kCopy, out);
  });
}

Result<std::string_view> BlockingClient::CopyPiece(const wire::CopyPieceParams& params) {
  return impl_->Call(wire::DecodeCopyPieceReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeCopyPieceRequest(msgid, params, out);
  });
}

Result<wire::ClusterReply> BlockingClient::Cluster() {
  return impl_->Call(wire::DecodeClusterReply, [](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePlainRequest(msgid, Method::kCluster, out);
  });
}

Result<uint64_t> BlockingClient::Handover() {
  return impl_->Call(wire::DecodeUintReply, [](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePlainRequest(msgid, Method::kHandover, out);
  });
}

Result<wire::FlowRow> BlockingClient::Flow(const wire::FlowParams& params) {
  return impl_->Call(wire::DecodeFlowRow, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeFlowRequest(msgid, params, out);
  });
}

Result<wire::Page<wire::FlowRow>> BlockingClient::Flows(const wire::PageParams& page) {
  return impl_->Call(wire::DecodeFlowPage, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePageRequest(msgid, Method::kFlows, page, out);
  });
}

Result<wire::Page<wire::TokenRow>> BlockingClient::Tokens(const wire::TokensParams& params) {
  return impl_->Call(wire::DecodeTokenPage, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeTokensRequest(msgid, params, out);
  });
}

Result<wire::Page<wire::SessionRow>> BlockingClient::Sessions(const wire::PageParams& page) {
  return impl_->Call(wire::DecodeSessionPage, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePageRequest(msgid, Method::kSessions, page, out);
  });
}

Result<std::vector<wire::ParamRow>> BlockingClient::Params(const wire::ValuesParams& params) {
  return impl_->Call(wire::DecodeParamRows, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeParamsRequest(msgid, params, out);
  });
}

Result<std::vector<wire::WaiterRow>> BlockingClient::Waiters(const wire::WaitersParams& params) {
  return impl_->Call(wire::DecodeWaiterRows, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeWaitersRequest(msgid, params, out);
  });
}

Result<wire::Page<wire::HistoryRow>> BlockingClient::History(const wire::PageParams& page) {
  return impl_->Call(wire::DecodeHistoryPage, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePageRequest(msgid, Method::kHistory, page, out);
  });
}

Result<wire::Page<wire::NamespaceRow>> BlockingClient::Namespaces(const wire::PageParams& page) {
  return impl_->Call(wire::DecodeNamespacePage, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePageRequest(msgid, Method::kNamespaces, page, out);
  });
}

Result<uint64_t> BlockingClient::RulesLoad(std::string_view name_space, std::string_view json) {
  return impl_->Call(wire::DecodeUintReply, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeRulesLoadRequest(msgid, name_space, json, out);
  });
}

Result<std::string_view> BlockingClient::Info() {
  return impl_->Call(Undecoded, [](uint32_t msgid, OutputBuffer* out) {
    wire::EncodePlainRequest(msgid, Method::kInfo, out);
  });
}

Result<std::string_view> BlockingClient::RulesList(const wire::RulesListParams& params) {
  return impl_->Call(Undecoded, [&](uint32_t msgid, OutputBuffer* out) {
    wire::EncodeRulesListRequest(msgid, params, out);
  });
}

}  // namespace nowcalls::client
