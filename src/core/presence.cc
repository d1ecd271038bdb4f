#include "core/presence.h"

#include <string>

#include "base/check.h"

namespace nowcalls::core {
namespace {

// Of "@HOST:PORT".
std::string_view HostOf(std::string_view display_id) {
  if (display_id.starts_with('@')) display_id.remove_prefix(1);
  return display_id.substr(0, display_id.rfind(':'));
}

// The first host, by name, but for `host` that the session is online from; null if there is none.
const std::string* OtherHost(const SessionState& session, std::string_view host) {
  for (const auto& [other, connections] : session.hosts) {
    if (other != host) return &other;
  }
  return nullptr;
}

}  // namespace

Result<HelloAnswer> Presence::Hello(const Step& step, std::string_view name_space,
                                    const std::optional<std::string_view>& client_id,
                                    std::string_view display_id, bool exclusive) {
  const Result<SessionSlot> slot = FindOrOpen(step, name_space, client_id, display_id);
  if (!slot.ok()) return slot.status();
  if (exclusive) NOWCALLS_RETURN_IF_ERROR(CheckExclusive(display_id, *slot));
  SessionState& session = books_->sessions().at(*slot);
  Namespace& space = books_->flows().name_space(session.name_space);
  if (++session.connections == 1) {
    absence_->CameBack(*slot);
    ++space.sessions_online;
    books_->wake_list().AddNamespace(session.name_space);
    session.told_of_host = false;
  } else {
    WarnIfShared(display_id, &session);
  }
  CountHost(display_id, &session);
  return HelloAnswer{*slot, session.id, space.sessions_online, session.tokens.size};
}

Status Presence::CheckExclusive(std::string_view display_id, SessionSlot slot) const {
  const SessionState& session = books_->sessions().at(slot);
  const std::string* const other = OtherHost(session, HostOf(display_id));
  if (other == nullptr) return {};
  return Status::AlreadyExists("hello: client_id " + session.client_id + " is online from " +
                               *other + " already, and options.exclusive is set");
}

void Presence::CountHost(std::string_view display_id, SessionState* session) {
  if (session->kind == ledger::SessionKind::kNamed) {
    ++session->hosts[std::string(HostOf(display_id))];
  }
}

void Presence::CountOutHost(std::string_view display_id, SessionState* session) {
  if (session->kind != ledger::SessionKind::kNamed) return;
  const auto host = session->hosts.find(std::string(HostOf(display_id)));
  NOWCALLS_CHECK(host != session->hosts.end());
  if (--host->second == 0) session->hosts.erase(host);
}

// Two processes that chose the same client id share one session: each may release what the other
// holds. They are told by their hosts, since one process may have several connections.
void Presence::WarnIfShared(std::string_view display_id, SessionState* session) {
  const std::string_view host = HostOf(display_id);
  const std::string* const other = OtherHost(*session, host);
  if (session->told_of_host || other == nullptr) return;
  const std::string& name_space = books_->flows().name_space(session->name_space).name;
  notices_->AddIfRoom(
      {.warning = true,
       .topic = LogTopic::kPeer,
       .text = "client " + session->client_id + " of namespace " + name_space +
               ": is online from " + *other + " and now from " + std::string(host) +
               " too; if these are two processes they share their tokens, so give each a client id "
               "of its own",
       .fields = {{"client", session->client_id},
                  {"namespace", name_space},
                  {"peer", std::string(display_id.substr(1))}}});
  session->told_of_host = true;
}

Result<SessionSlot> Presence::FindOrOpen(const Step& step, std::string_view name_space,
                                         const std::optional<std::string_view>& client_id,
                                         std::string_view display_id) {
  const Limits& limits = books_->options().limits;
  NamespaceSlot space = books_->flows().FindNamespace(name_space);
  if (space == kNoNamespace && books_->flows().namespaces() >= limits.namespaces_max) {
    return Status::ResourceExhausted("the server knows " + std::to_string(limits.namespaces_max) +
                                     " namespaces already (namespaces_max)");
  }
  if (client_id.has_value() && space != kNoNamespace) {
    const SessionSlot known = books_->sessions().FindNamed(space, *client_id);
    if (known != kNoSession) return known;
  }
  if (books_->sessions().size() >= limits.sessions_max) {
    return Status::ResourceExhausted("the server holds " + std::to_string(limits.sessions_max) +
                                     " sessions already (sessions_max)");
  }
  space = books_->flows().FindOrAddNamespace(name_space);
  return books_->OpenSession(step, space, client_id, display_id);
}

void Presence::Goodbye(const Step& step, SessionSlot slot, uint32_t owner,
                       std::string_view display_id) {
  waiting_->RemoveAllOf(owner);
  SessionState& session = books_->sessions().at(slot);
  NOWCALLS_CHECK(session.connections > 0);
  CountOutHost(display_id, &session);
  if (--session.connections > 0) return;
  --books_->flows().name_space(session.name_space).sessions_online;
  books_->wake_list().AddNamespace(session.name_space);
  absence_->WentOffline(step, slot);
}

}  // namespace nowcalls::core
