#include "engine/identities.h"

#include <algorithm>
#include <optional>

#include "base/counted.h"
#include "core/books.h"
#include "engine/closing.h"
#include "engine/inputs.h"
#include "engine/permission.h"
#include "net/origin.h"

namespace nowcalls::engine {
namespace {

// A look asks the indexes of the list, some us.
constexpr size_t kLooksPerTurn = 1'024;

}  // namespace

LogFields FieldsOf(const Connection& connection) {
  const access::Identity& identity = connection.identity;
  return {{"principal", identity.principal.name},
          {"by", std::string(access::ProofName(identity.proof))},
          {"peer", connection.peer.name}};
}

std::string NameOf(const Connection& connection) {
  const std::string& name = connection.identity.principal.name;
  const std::string& peer = connection.peer.name;
  return name.empty() || name == peer ? peer : name + " at " + peer;
}

void Identities::Greet(Connection* connection, Instant now) {
  Set(connection, gate_.Greet(connection->peer), now);
}

Status Identities::Show(Connection* connection, std::string_view secret, Instant now) {
  Result<access::Identity> shown = gate_.Show(connection->peer, secret);
  if (shown.status().code() == StatusCode::kPermissionDenied) {
    ++wrong_secrets_;
    ++connection->wrong_secrets;
    connection->wrong_secret_until = now + kWrongSecretMs;
    wrong_.emplace(connection->wrong_secret_until->ms, connection->id);
    NoteWrong(*connection, now);
    return Status::Unavailable("the answer follows");
  }
  if (!shown.ok()) return Status::PermissionDenied(shown.status().message());
  // Its session would be out of its own reach, with tokens and waiters.
  if (connection->session != core::kNoSession) {
    const core::Books& books = core_->books();
    const core::NamespaceSlot slot = books.sessions().at(connection->session).name_space;
    if (!SightOf(shown->principal).Has(books.flows(), slot)) {
      return Status::PermissionDenied(shown->principal.name +
                                      " may not reach the namespace of this connection's session; "
                                      "identify on a new connection, before hello");
    }
  }
  Set(connection, *std::move(shown), now);
  return {};
}

void Identities::Set(Connection* connection, access::Identity identity, Instant now) {
  connection->identity = std::move(identity);
  if (connection->identity.known()) {
    strangers_.Remove(connection);
  } else if (connection->stranger == nullptr) {
    strangers_.Add(connection, now);
  }
}

void Identities::Forget(Connection* connection) {
  if (connection->wrong_secret_until.has_value()) {
    wrong_.erase({connection->wrong_secret_until->ms, connection->id});
    connection->wrong_secret_until.reset();
  }
  strangers_.Remove(connection);
}

void Identities::SetGate(access::Gate gate) {
  gate_ = std::move(gate);
  looks_again_ = true;
  next_look_ = 0;
}

void Identities::OnTime(Instant now) {
  strangers_.CloseOverdue(now);
  AnswerWrong(now);
  if (looks_again_) LookAgain(now);
}

Instant Identities::NextDeadline() const {
  if (looks_again_) return Instant{0};
  const Instant next = strangers_.NextDeadline();
  return wrong_.empty() ? next : std::min(next, Instant{wrong_.begin()->first});
}

// The answer is the same whatever was wrong, and as late. Other connections of the address go on:
// services share addresses.
void Identities::AnswerWrong(Instant now) {
  while (!wrong_.empty() && wrong_.begin()->first <= now.ms) {
    Connection* const connection = connections_->Get(wrong_.begin()->second);
    wrong_.erase(wrong_.begin());
    connection->wrong_secret_until.reset();
    if (connection->closed()) continue;
    connection->protocol->AnswerWrongSecret(connection);
    if (!connection->open()) {
      closing_->CloseIfAnswered(connection);
    } else if (connection->wrong_secrets >= kWrongSecretsMax) {
      closing_->EndRefused(connection,
                           "has shown " + std::to_string(kWrongSecretsMax) + " wrong secrets");
    } else {
      inputs_->lines()->WaitForTurn(connection);
    }
  }
}

void Identities::LookAgain(Instant now) {
  const size_t end = std::min(next_look_ + kLooksPerTurn, connections_->all().size());
  for (; next_look_ < end; ++next_look_) {
    Connection* const connection = connections_->Get(static_cast<ConnectionId>(next_look_));
    // One that ends takes no more requests: it needs no rights.
    if (connection->open()) LookAgainAt(connection, now);
  }
  looks_again_ = next_look_ < connections_->all().size();
  if (!looks_again_) NoteClosed();
}

void Identities::LookAgainAt(Connection* connection, Instant now) {
  std::optional<access::Identity> again = gate_.Again(connection->peer, connection->identity);
  if (again.has_value()) return Set(connection, *std::move(again), now);
  const access::Identity& identity = connection->identity;
  ++closed_[identity.proof == access::Proof::kOpen ? std::string() : identity.principal.name];
  closing_->End(connection);
}

// A line a connection would be as many as there are connections.
void Identities::NoteClosed() {
  for (const auto& [name, count] : std::exchange(closed_, {})) {
    const std::string who =
        name.empty() ? "whoever was let in without an access list" : "principal " + name;
    driver_->Log(Severity::kInfo, LogTopic::kAct,
                 who + " may do less by the new access list, or nothing: closed " +
                     Counted(count, "connection"),
                 {{"principal", name}, {"connections", std::to_string(count), true}});
  }
}

void Identities::NoteWrong(const Connection& connection, Instant now) {
  if (!wrong_lines_.Take(net::OriginOf(connection.peer), now)) return;
  // Few by their quota. Lines about peers have one bound, and a crowd would hide a guesser.
  driver_->Log(Severity::kWarn, LogTopic::kServer,
               "connection " + connection.peer.name +
                   " has shown a wrong secret; others of its address within 10 s are only counted",
               {{"peer", connection.peer.name}, {"reason", "wrong secret"}});
}

void Identities::NoteRefused(const Connection& connection, std::string_view method,
                             const std::string& why, bool is_act, Instant now) {
  ++refused_calls_;
  if (!is_act || !refused_lines_.Take(net::OriginOf(connection.peer), now)) return;
  LogFields fields = FieldsOf(connection);
  fields.push_back({"method", std::string(method)});
  fields.push_back({"reason", why});
  driver_->Log(Severity::kWarn, LogTopic::kAct,
               "connection " + NameOf(connection) + " was refused " + std::string(method) + ": " +
                   std::string(method) + " " + why,
               fields);
}

}  // namespace nowcalls::engine
