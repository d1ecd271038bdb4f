// BlockingClient: one connection to a server, one request at a time.
//
// Thread: one at a time. For tools: every call waits for its answer, at most the timeout.
//
// Errors of every call: what is wrong with the request, as the server says it (kInvalidArgument,
// kAlreadyExists, kResourceExhausted with "NAME: message"); kUnavailable when the server surely did
// not apply it, also because what listens there is plainly none of nowcalls; kOutcomeUnknown when
// the answer did not come or was not understood. After these two, but for a server's own error, the
// connection is closed and every later call returns kUnavailable.
#ifndef NOWCALLS_CLIENT_BLOCKING_CLIENT_H_
#define NOWCALLS_CLIENT_BLOCKING_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nowcalls/status.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/namespace_rows.h"
#include "wire/rows.h"

namespace nowcalls::client {

class BlockingClient {
 public:
  // `address` is HOST:PORT ("127.0.0.1:18730", "[::1]:18730", "localhost:18730"). kInvalidArgument
  // for another form, kUnavailable when nobody answers there. `timeout_ms` bounds the connecting,
  // with the lookup of a name, and then each call. `connect_ms` bounds the connecting further.
  static Result<std::unique_ptr<BlockingClient>> Connect(std::string_view address,
                                                         int64_t timeout_ms,
                                                         int64_t connect_ms = INT64_MAX);
  ~BlockingClient();

  Result<wire::HelloReply> Hello(std::string_view name_space,
                                 std::optional<std::string_view> client_id);
  // The server's ledger clock in milliseconds.
  Result<uint64_t> Ping();
  Result<wire::AcquireReply> Acquire(const wire::AcquireParams& params);
  // Calls a second, of a rule or of values of its parameter.
  Result<wire::RateReply> Request(const wire::RateParams& params);
  Result<wire::RateReply> RequestParam(const wire::ValueRateParams& params,
                                       std::span<const Param> values);
  Result<TokenStatus> Release(uint64_t token_id);
  Result<wire::KeepReply> Keep(uint64_t token_id);
  Result<TokenStatus> Reclaim(uint64_t token_id, std::string_view reason);
  // One piece of a reclaim; `more` of the answer asks for another call.
  Result<wire::ReclaimedReply> ReclaimClient(const wire::ReclaimClientParams& params);
  Result<wire::ReclaimedReply> ReclaimFlow(const wire::ReclaimFlowParams& params);
  Result<wire::ReclaimedReply> Purge(const wire::PurgeParams& params);
  Result<wire::DrainReply> Drain(const wire::DrainParams& params);
  Result<wire::ReclaimNamespaceReply> ReclaimNamespace(const wire::ReclaimNamespaceParams& params);
  Result<wire::DrainNamespaceReply> DrainNamespace(const wire::DrainNamespaceParams& params);
  // Takes as long as copying and reading the ledger does.
  Result<wire::BackupReply> Backup(const wire::BackupParams& params);
  // kInvalidArgument too when neither a rule nor a live token has this id.
  Result<wire::FlowRow> Flow(const wire::FlowParams& params);
  Result<wire::Page<wire::FlowRow>> Flows(const wire::PageParams& page);
  Result<wire::Page<wire::TokenRow>> Tokens(const wire::TokensParams& params);
  Result<wire::Page<wire::SessionRow>> Sessions(const wire::PageParams& page);
  Result<std::vector<wire::ParamRow>> Params(const wire::ValuesParams& params);
  Result<std::vector<wire::WaiterRow>> Waiters(const wire::WaitersParams& params);
  Result<wire::Page<wire::HistoryRow>> History(const wire::PageParams& page);
  Result<wire::Page<wire::NamespaceRow>> Namespaces(const wire::PageParams& page);
  // The number of rules that are in force now.
  Result<uint64_t> RulesLoad(std::string_view name_space, std::string_view json);

  // The encoded result, for answers without a fixed layout (wire/json.h): info, rules_list.
  // The view is valid until the next call.
  Result<std::string_view> Info();
  Result<std::string_view> RulesList(const wire::RulesListParams& params);

 private:
  struct Impl;
  explicit BlockingClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_BLOCKING_CLIENT_H_
