#include "web/entrance.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "base/limits.h"
#include "web/credentials.h"

namespace nowcalls::web {
namespace {

constexpr char kNoSecret[] =
    "sign in: the secret of a principal of the access file, as Bearer or as Basic's password "
    "(--access)";
constexpr char kWrongSecret[] = "the name or the secret is wrong";
constexpr char kNotPrivate[] =
    "a secret is taken over https:// or from the server's own machine only: others could read it";

// Browsers ask for a password if Basic is offered. A script of the page gets another scheme: it
// shows that the access ended, and a dialog out of the blue would hide that.
Response Unknown(const Request& request, const char* text) {
  Response response = ErrorResponse(401, text);
  response.headers.emplace_back("WWW-Authenticate",
                                request.is_fetch ? R"(Bearer realm="nowcalls")"
                                                 : R"(Basic realm="nowcalls", charset="UTF-8")");
  return response;
}

// Who has an IPv6 address mostly has its /64.
std::string NeighbourhoodOf(const std::string& host) {
  in6_addr address{};
  if (inet_pton(AF_INET6, host.c_str(), &address) != 1 || IN6_IS_ADDR_V4MAPPED(&address)) {
    return host;
  }
  constexpr size_t kBytes = 8;
  return {reinterpret_cast<const char*>(address.s6_addr), kBytes};
}

}  // namespace

access::Gate Entrance::gate() const {
  const std::lock_guard lock(mutex_);
  return gate_;
}

void Entrance::SetGate(access::Gate gate) {
  const std::lock_guard lock(mutex_);
  gate_ = std::move(gate);
}

Entrance::Visit Entrance::Enter(const Request& request, const access::Needs& needs) {
  const access::Gate gate = this->gate();
  const net::Peer& peer = request.peer;
  access::Identity identity = gate.Greet(peer);
  // A secret that is shown counts, whatever the address would be.
  const auto shown = gate.open() ? std::nullopt : CredentialsOf(request.authorization);
  if (shown) {
    Result<access::Identity> proved = gate.Show(peer, shown->secret);
    if (proved.status().code() == StatusCode::kFailedPrecondition) {
      return {.refusal = ErrorResponse(403, kNotPrivate)};
    }
    const bool is_right =
        proved.ok() && (shown->user.empty() || shown->user == proved->principal.name);
    if (!is_right) return {.refusal = Wrong(request)};
    identity = *std::move(proved);
  }
  if (access::May(identity.principal, needs, std::nullopt)) return {.identity = identity};
  if (identity.known()) {
    return {.refusal = ErrorResponse(
                403, request.path + " " + access::WhyNot(identity.principal, needs, std::nullopt))};
  }
  // A browser that is asked would send the secret for all to read.
  const bool is_private = peer.encrypted || peer.loopback;
  return {.refusal = is_private ? Unknown(request, kNoSecret) : ErrorResponse(403, kNotPrivate)};
}

std::optional<access::Principal> Entrance::Again(const net::Peer& peer,
                                                 const access::Identity& identity) const {
  const auto now = gate().Again(peer, identity);
  if (!now) return std::nullopt;
  return now->principal;
}

// The delay spares the log and the machine. It needs no room for everybody: a secret cannot be
// guessed, since it has 256 random bits.
Response Entrance::Wrong(const Request& request) {
  wrong_secrets_.fetch_add(1, std::memory_order_relaxed);
  LogWrong(request.peer.host);
  Response response = Unknown(request, kWrongSecret);
  response.delay_ms = kWrongSecretMs;
  return response;
}

void Entrance::LogWrong(const std::string& host) {
  const int64_t now_ms = BoottimeMs();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(logged_ms_, [&](const auto& one) { return one.second + kLogEveryMs <= now_ms; });
    if (logged_ms_.size() >= kLoggedMax) return;
    if (!logged_ms_.emplace(NeighbourhoodOf(host), now_ms).second) return;
  }
  if (!log_) return;
  log_(/*problem=*/true, "HTTP got a wrong secret from " + host +
                             ". For a minute further ones from there are counted only "
                             "(nowcalls_http_wrong_secrets_total)");
}

}  // namespace nowcalls::web
