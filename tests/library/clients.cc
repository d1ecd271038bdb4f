#include "library/clients.h"

#include <stdexcept>
#include <utility>

namespace nowcalls::testing {

std::unique_ptr<Client> StartClient(const ClientOptions& options) {
  Result<std::unique_ptr<Client>> client = Client::Start(options);
  if (!client.ok()) throw std::runtime_error(client.status().ToString());
  return *std::move(client);
}

std::unique_ptr<Client> StartClient(const std::string& address, const std::string& client_id) {
  ClientOptions options;
  options.addresses = {address};
  options.client_id = client_id;
  options.timeout = Milliseconds(kPatienceMs);
  options.fallback = Fallback::kFail;  // Only servers answer.
  return StartClient(options);
}

int64_t NowCalls(RpcClient* rpc, FlowId flow) {
  const Reply reply = rpc->Call("flow", {flow.value});
  if (!reply.ok()) throw std::runtime_error("flow: " + reply.ToString());
  return reply.result.at("now_calls").get<int64_t>();
}

void ReclaimToken(RpcClient* rpc, TokenId token, const std::string& reason) {
  const Reply reply = rpc->Call("reclaim", {token.value, reason});
  if (!reply.ok()) throw std::runtime_error("reclaim: " + reply.ToString());
}

}  // namespace nowcalls::testing
