#include "core/presence.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace nowcalls::core {
namespace {

// HOST:PORT of "@HOST:PORT".
std::string_view PeerOf(std::string_view display_id) {
  if (display_id.starts_with('@')) display_id.remove_prefix(1);
  return display_id;
}

}  // namespace

Result<HelloAnswer> Presence::Hello(const Step& step, const HelloRequest& request) {
  // All refusals come before the first change.
  if (request.exclusive) NOWCALLS_RETURN_IF_ERROR(CheckExclusive(request));
  SessionSlot slot = Find(request);
  if (slot == kNoSession) {
    const Result<SessionSlot> opened = Open(step, request);
    if (!opened.ok()) return opened.status();
    slot = *opened;
  }
  SessionState& session = sessions_->at(slot);
  Namespace& space = flows_->name_space(session.name_space);
  // Online again. A share of the namespace's levels is new, so its lanes may have other room.
  if (++session.connections == 1) {
    absence_->CameBack(slot);
    ++space.sessions_online;
    wake_list_->AddNamespace(session.name_space);
    session.told_of_host = false;
    if (session.client != nullptr && ++session.client->online > 1) {
      WarnOfInstances(request.display_id, session);
    }
  } else {
    WarnIfShared(request.display_id, &session);
  }
  if (session.client != nullptr) session.AddPeer(PeerOf(request.display_id));
  return HelloAnswer{slot, session.id, space.sessions_online, session.tokens.size};
}

// An instance is a process: it may come back from another host while its old connection is open.
// Processes that name none (instance 0) are told apart by their hosts.
Status Presence::CheckExclusive(const HelloRequest& request) const {
  const NamespaceSlot space = flows_->FindNamespace(request.name_space);
  if (!request.client_id.has_value() || space == kNoNamespace) return {};
  const ClientState* const client = sessions_->FindClient(space, *request.client_id);
  if (client == nullptr) return {};
  const std::string whose = "hello: client_id " + std::string(*request.client_id);
  const SessionSlot own = sessions_->FindNamed(space, *request.client_id, request.instance);
  const bool is_online = own != kNoSession && sessions_->at(own).online();
  if (client->online > (is_online ? 1U : 0U)) {
    return Status::AlreadyExists(whose +
                                 " is online as another instance, and options.exclusive is set");
  }
  if (!is_online || request.instance != 0) return {};
  const std::string_view other = OtherHost(sessions_->at(own), HostOf(PeerOf(request.display_id)));
  if (other.empty()) return {};
  return Status::AlreadyExists(whose + " is online from " + std::string(other) +
                               " already, and options.exclusive is set");
}

// Warns once, until the client is offline.
void Presence::WarnOfInstances(std::string_view display_id, const SessionState& session) {
  if (std::exchange(session.client->told, true)) return;
  const std::string& name_space = flows_->name_space(session.name_space).name;
  notices_->AddIfRoom(
      {.warning = true,
       .topic = LogTopic::kPeer,
       .text = "client " + session.client_id + " of namespace " + name_space +
               ": another instance of it is online, and now instance " +
               std::to_string(session.instance) + " from " +
               std::string(HostOf(PeerOf(display_id))) +
               " too; these are processes with one client id, and each has tokens of its own",
       .fields = {{"client", session.client_id},
                  {"namespace", name_space},
                  {"instance", std::to_string(session.instance)},
                  {"peer", std::string(PeerOf(display_id))}}});
}

// Processes with one client id and no instance share a session: each may release the other's
// tokens.
void Presence::WarnIfShared(std::string_view display_id, SessionState* session) {
  if (session->client == nullptr || session->instance != 0 || session->told_of_host) return;
  const std::string_view host = HostOf(PeerOf(display_id));
  const std::string_view other = OtherHost(*session, host);
  if (other.empty()) return;
  const std::string& name_space = flows_->name_space(session->name_space).name;
  notices_->AddIfRoom(
      {.warning = true,
       .topic = LogTopic::kPeer,
       .text = "client " + session->client_id + " of namespace " + name_space +
               ": is online from " + std::string(other) + " and now from " + std::string(host) +
               " too; if these are two processes they share their tokens, so give each a client id "
               "of its own",
       .fields = {{"client", session->client_id},
                  {"namespace", name_space},
                  {"peer", std::string(PeerOf(display_id))}}});
  session->told_of_host = true;
}

SessionSlot Presence::Find(const HelloRequest& request) const {
  const NamespaceSlot space = flows_->FindNamespace(request.name_space);
  if (!request.client_id.has_value() || space == kNoNamespace) return kNoSession;
  return sessions_->FindNamed(space, *request.client_id, request.instance);
}

Result<SessionSlot> Presence::Open(const Step& step, const HelloRequest& request) {
  const Limits& limits = books_->options().limits;
  if (flows_->FindNamespace(request.name_space) == kNoNamespace &&
      flows_->namespaces() >= limits.namespaces_max) {
    return Status::ResourceExhausted("the server knows " + std::to_string(limits.namespaces_max) +
                                     " namespaces already (namespaces_max)");
  }
  if (sessions_->size() >= limits.sessions_max) {
    return Status::ResourceExhausted("the server holds " + std::to_string(limits.sessions_max) +
                                     " sessions already (sessions_max)");
  }
  return books_->OpenSession(step, request);
}

void Presence::Goodbye(const Step& step, SessionSlot slot, uint32_t owner,
                       std::string_view display_id) {
  // Waiters first, then the share of the level: nobody is granted into a level about to fall.
  waiting_->RemoveAllOf(owner);
  SessionState& session = sessions_->at(slot);
  NOWCALLS_CHECK(session.connections > 0);
  if (session.client != nullptr) session.RemovePeer(PeerOf(display_id));
  if (--session.connections > 0) return;
  if (session.client != nullptr && --session.client->online == 0) session.client->told = false;
  --flows_->name_space(session.name_space).sessions_online;
  wake_list_->AddNamespace(session.name_space);
  // Last: without tokens this closes the session.
  absence_->WentOffline(step, slot);
}

}  // namespace nowcalls::core
