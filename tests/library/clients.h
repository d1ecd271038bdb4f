// What tests of the client library have in common.
//
// Thread: one at a time.
#ifndef NOWCALLS_LIBRARY_CLIENTS_H_
#define NOWCALLS_LIBRARY_CLIENTS_H_

#include <memory>
#include <string>

#include "nowcalls/client.h"
#include "support/json.h"
#include "support/rpc_client.h"

namespace nowcalls::testing {

inline constexpr FlowId kFlow{7};

// A client of `address` in namespace "default"; throws std::runtime_error if there is none.
std::unique_ptr<Client> StartClient(const ClientOptions& options);
std::unique_ptr<Client> StartClient(const std::string& address, const std::string& client_id);

// The flow's calls in progress, as the server says.
int64_t NowCalls(RpcClient* rpc, FlowId flow = kFlow);
// As the operator does.
void ReclaimToken(RpcClient* rpc, TokenId token, const std::string& reason = "a test");

}  // namespace nowcalls::testing

#endif  // NOWCALLS_LIBRARY_CLIENTS_H_
