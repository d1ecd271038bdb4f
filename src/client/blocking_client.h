// BlockingClient: one connection to a server, one request at a time, for tools.
//
// Thread: one at a time. Every call waits at most the timeout. Errors:
//
//   kInvalidArgument, kAlreadyExists, kResourceExhausted   the server's "NAME: message"
//   kPermissionDenied the same: the client is not let in, or not that far
//   kUnavailable      surely not applied, or no nowcalls-server
//   kOutcomeUnknown   no answer, or not understood
//
// The last two, unless a server's own error, close the connection; later calls: kUnavailable.
#ifndef NOWCALLS_CLIENT_BLOCKING_CLIENT_H_
#define NOWCALLS_CLIENT_BLOCKING_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client/dial.h"
#include "net/endpoint.h"
#include "nowcalls/status.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/cluster_messages.h"
#include "wire/namespace_rows.h"
#include "wire/rows.h"

namespace nowcalls::client {

struct ConnectOptions {
  // HOST:PORT, "[::1]:18730", or the path of a Unix socket; with commas several, which are tried in
  // turn.
  std::string address{};
  int64_t timeout_ms = 5000;       // Of connecting with lookup and handshake, and of each call.
  int64_t connect_ms = INT64_MAX;  // Of connecting, if that is less.
  Security security{};
};

class BlockingClient {
 public:
  // Identifies, too, if there is a secret. kInvalidArgument: another form of address, or a wrong
  // file. kPermissionDenied: the secret is wrong, or may not travel. kUnavailable: no answer.
  static Result<std::unique_ptr<BlockingClient>> Connect(const ConnectOptions& options);
  // Plain.
  static Result<std::unique_ptr<BlockingClient>> Connect(std::string_view address,
                                                         int64_t timeout_ms) {
    return Connect({.address = std::string(address), .timeout_ms = timeout_ms});
  }
  ~BlockingClient();

  // Empty secret: who does the server take this client for?
  Result<wire::IdentifyReply> Identify(std::string_view secret);

  Result<wire::HelloReply> Hello(std::string_view name_space,
                                 std::optional<std::string_view> client_id);
  // The ledger clock, ms.
  Result<uint64_t> Ping();
  Result<wire::AcquireReply> Acquire(const wire::AcquireParams& params);
  // Calls a second, also by value.
  Result<wire::RateReply> Request(const wire::RateParams& params);
  Result<wire::RateReply> RequestParam(const wire::ValueRateParams& params,
                                       std::span<const Param> values);
  Result<TokenStatus> Release(uint64_t token_id);
  Result<wire::KeepReply> Keep(uint64_t token_id);
  Result<TokenStatus> Reclaim(uint64_t token_id, std::string_view reason);
  // One piece of a reclaim; `more` asks for another call.
  Result<wire::ReclaimedReply> ReclaimClient(const wire::ReclaimClientParams& params);
  Result<wire::ReclaimedReply> ReclaimFlow(const wire::ReclaimFlowParams& params);
  Result<wire::ReclaimedReply> Purge(const wire::PurgeParams& params);
  Result<wire::DrainReply> Drain(const wire::DrainParams& params);
  Result<wire::ReclaimNamespaceReply> ReclaimNamespace(const wire::ReclaimNamespaceParams& params);
  Result<wire::DrainNamespaceReply> DrainNamespace(const wire::DrainNamespaceParams& params);
  Result<wire::BackupReply> Backup(const wire::BackupParams& params);
  // A backup in the server's own place, and the pieces of its files; a view lives until the next
  // call.
  Result<wire::BackupReply> Copy();
  Result<std::string_view> CopyPiece(const wire::CopyPieceParams& params);
  // kInvalidArgument: the server is no member of a cluster, here and below.
  Result<wire::ClusterReply> Cluster();
  // The term that ends. kResourceExhausted: no other member can take over now.
  Result<uint64_t> Handover();
  // kInvalidArgument also if no rule and no live token has the id.
  Result<wire::FlowRow> Flow(const wire::FlowParams& params);
  Result<wire::Page<wire::FlowRow>> Flows(const wire::PageParams& page);
  Result<wire::Page<wire::TokenRow>> Tokens(const wire::TokensParams& params);
  Result<wire::Page<wire::SessionRow>> Sessions(const wire::PageParams& page);
  Result<std::vector<wire::ParamRow>> Params(const wire::ValuesParams& params);
  Result<std::vector<wire::WaiterRow>> Waiters(const wire::WaitersParams& params);
  Result<wire::Page<wire::HistoryRow>> History(const wire::PageParams& page);
  Result<wire::Page<wire::NamespaceRow>> Namespaces(const wire::PageParams& page);
  // Rules in force.
  Result<uint64_t> RulesLoad(std::string_view name_space, std::string_view json);

  // Encoded results without a fixed layout (wire/json.h). Views live until the next call.
  Result<std::string_view> Info();
  Result<std::string_view> RulesList(const wire::RulesListParams& params);

 private:
  static Result<std::unique_ptr<BlockingClient>> ConnectTo(const net::Endpoint& peer,
                                                           const ConnectOptions& options);

  struct Impl;
  explicit BlockingClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_BLOCKING_CLIENT_H_
