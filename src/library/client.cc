#include "nowcalls/client.h"

#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/text.h"
#include "client/dial.h"
#include "client/timeouts.h"
#include "library/tcp_front.h"
#include "net/endpoint.h"

namespace nowcalls {
namespace {

// HOST-PROCESS-RANDOM, for an operator who reads a listing. A host name that no client id may
// have becomes "client".
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
    NOWCALLS_RETURN_IF_ERROR(net::ParseServer(address).status().WithContext("addresses"));
  }
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(options.name_space).WithContext("name_space"));
  if (!options.client_id.empty()) {
    NOWCALLS_RETURN_IF_ERROR(CheckClientId(options.client_id).WithContext("client_id"));
  }
  if (options.secret.size() > kSecretBytesMax) {
    return Status::InvalidArgument("secret has more than " + std::to_string(kSecretBytesMax) +
                                   " bytes");
  }
  NOWCALLS_RETURN_IF_ERROR(client::CheckTls(options.tls));
  return client::CheckTimeout(options.timeout);
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Start(const ClientOptions& options) {
  NOWCALLS_RETURN_IF_ERROR(CheckOptions(options));
  ClientOptions used = options;
  if (used.client_id.empty()) used.client_id = MadeUpClientId();
  Result<std::shared_ptr<library::TcpFront>> front = library::TcpFront::Start(used);
  if (!front.ok()) return front.status();
  return std::unique_ptr<Client>(new Client(*std::move(front)));
}

Status Client::WaitConnected(Milliseconds timeout) { return front()->WaitConnected(timeout); }

}  // namespace nowcalls
