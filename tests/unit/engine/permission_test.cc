// Every row of the tables of methods, asked by principals of every role, and of a namespace, about
// what is in it, in another, and nowhere.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "access/access.h"
#include "base/bytes.h"
#include "engine/rpc/methods.h"
#include "engine/sentinel/requests.h"
#include "support/only_flow.h"
#include "unit/engine/tenants.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::engine {
namespace {

using access::Role;
using testing::AcquireRequest;
using testing::EngineHarness;
using testing::EngineReply;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::PrincipalEntry;
using wire::Method;
using wire::sentinel::RequestType;

constexpr Role kRoles[] = {Role::kAnybody, Role::kObserver, Role::kClient, Role::kAdministrator};

// Nobody has the role kAnybody: who has it is not known.
ConnectionId ConnectWith(EngineHarness* h, Role role) {
  h->SetAccess({PrincipalEntry("observer", Role::kObserver),
                PrincipalEntry("client", Role::kClient),
                PrincipalEntry("administrator", Role::kAdministrator)});
  h->Settle();
  return h->ConnectAs(access::RoleName(role));
}

TEST_CASE("a method is refused to a role below its own before anything is done") {
  for (const Role role : kRoles) {
    for (const rpc::MethodRow& method : rpc::AllMethods()) {
      CAPTURE(access::RoleName(role));
      CAPTURE(wire::MethodName(method.id));
      EngineHarness h;
      const ConnectionId id = ConnectWith(&h, role);
      h.Send(id, PlainRequest(7, method.id));
      h.Settle();
      if (h.driver().backup) h.engine().OnBackupDone(id, wire::BackupReply{}, h.now());
      h.Settle();
      const EngineReply reply = h.TakeReplies(id).at(0);
      const bool refused = reply.error && reply.error->code == wire::ErrorCode::kPermission;
      CHECK(refused == (role < method.needs.role));
      if (!refused) continue;
      const std::string name(access::RoleName(role));
      CHECK(reply.ErrorText() ==
            "PERMISSION: " + std::string(wire::MethodName(method.id)) + " needs the role " +
                std::string(access::RoleName(method.needs.role)) + ", and " +
                (role == Role::kAnybody ? "this connection" : name) + " is " + name);
    }
  }
}

TEST_CASE("a request of Sentinel's is answered FAIL to a role below its own") {
  for (const Role role : kRoles) {
    for (const sentinel::RequestRow& row : sentinel::kRequests) {
      CAPTURE(access::RoleName(role));
      CAPTURE(static_cast<int>(row.type));
      EngineHarness h;
      const ConnectionId id = ConnectWith(&h, role);
      h.Send(id, testing::SentinelRequest(row.type, "default", 1, 1));
      h.Settle();
      const TokenStatus status = testing::TakeSentinelStatus(&h, id);
      CHECK((status == TokenStatus::kFail) == (role < row.needs.role));
    }
  }
}

bool IsRefused(const EngineReply& reply) {
  return reply.error.has_value() && reply.error->code == wire::ErrorCode::kPermission;
}

bool IsActOfServer(const rpc::MethodRow& method) {
  return method.needs.role == Role::kAdministrator && method.needs.scope == access::Scope::kServer;
}

TEST_CASE("an act about the whole server is refused to an administrator of some namespaces") {
  size_t acts = 0;
  for (const rpc::MethodRow& method : rpc::AllMethods()) {
    if (!IsActOfServer(method)) continue;
    ++acts;
    CAPTURE(wire::MethodName(method.id));
    testing::Tenants t;
    const std::string name(wire::MethodName(method.id));
    CHECK(t.h.Call(t.anns, testing::RequestAbout(method.id, t.own)).ErrorText() ==
          "PERMISSION: " + name + " is about all namespaces, and ann has some");
    CHECK_FALSE(t.h.driver().backup.has_value());
    t.h.Send(t.root, testing::RequestAbout(method.id, t.own));
    const bool makes_one = method.id == Method::kBackup || method.id == Method::kCopy;
    CHECK(t.h.driver().backup.has_value() == makes_one);
  }
  CHECK(acts > 0);
}

// What names a flow or a namespace out of reach is refused; a token is not there; a listing without
// a name shows what is in reach.
TEST_CASE("each method keeps to the namespaces of the principal") {
  for (const rpc::MethodRow& method : rpc::AllMethods()) {
    CAPTURE(wire::MethodName(method.id));
    testing::Tenants t;
    const ConnectionId ann = t.h.ConnectAs("ann");
    REQUIRE(t.h.Call(ann, HelloRequest(1, "shop", "anns-second")).ErrorText() == "ok");
    for (const testing::Subject& subject : {t.own, t.other, t.nowhere}) {
      CAPTURE(subject.flow);
      const std::string request = testing::RequestAbout(method.id, subject);
      REQUIRE_FALSE(request.empty());  // The method is new, and needs a request there.
      const ConnectionId id = method.id == Method::kHello ? t.h.ConnectAs("ann") : ann;
      t.h.driver().TakeLog();
      t.h.Send(id, request);
      t.h.Settle();
      const auto replies = t.h.TakeReplies(id);
      REQUIRE_FALSE(replies.empty());
      const EngineReply& reply = replies.front();
      // Whatever is answered tells nothing of the other tenant.
      const std::string text = reply.ErrorText() + reply.result;
      CHECK(text.find("bobs-worker") == std::string::npos);
      if (!testing::NamesNamespace(method.id)) CHECK(text.find("bank") == std::string::npos);
      const bool named = testing::NamesFlow(method.id) || testing::NamesNamespace(method.id);
      // A namespace that does not exist is as one of another; a flow has none then.
      const bool is_out = subject.name_space == "bank" ||
                          (subject.name_space == "empty" && testing::NamesNamespace(method.id));
      CHECK(IsRefused(reply) == ((named && is_out) || IsActOfServer(method)));
      if (method.needs.scope == access::Scope::kToken && subject.name_space != "shop") {
        CHECK(reply.status() == TokenStatus::kAlreadyRelease);
      }
      const bool logged = t.h.driver().TakeLog().find("was refused ") != std::string::npos;
      const bool hidden = method.id == Method::kReclaim && subject.name_space == "bank";
      CHECK(logged == ((IsRefused(reply) || hidden) && method.needs.role == Role::kAdministrator));
    }
    CHECK(t.StillThere());
  }
}

TEST_CASE("each of Sentinel's requests keeps to the namespaces of the principal") {
  for (const sentinel::RequestRow& row : sentinel::kRequests) {
    CAPTURE(static_cast<int>(row.type));
    for (const char* const which : {"own", "other", "nowhere"}) {
      testing::Tenants t;
      const bool own = std::string(which) == "own";
      const testing::Subject& subject = own                             ? t.own
                                        : std::string(which) == "other" ? t.other
                                                                        : t.nowhere;
      const ConnectionId id = t.h.ConnectAs("ann");
      // Its session, without which a token would be in the namespace `default`.
      t.h.Send(id, testing::SentinelRequest(RequestType::kPing, "shop", 0, 0));
      t.h.Settle();
      CHECK(testing::TakeSentinelStatus(&t.h, id) == TokenStatus::kOk);
      const ConnectionId asker = row.type == RequestType::kPing ? t.h.ConnectAs("ann") : id;
      t.h.Send(asker,
               testing::SentinelRequest(row.type, subject.name_space, subject.flow, subject.token));
      t.h.Settle();
      const TokenStatus status = testing::TakeSentinelStatus(&t.h, asker);
      if (row.needs.scope == access::Scope::kToken) {
        CHECK(status == TokenStatus::kAlreadyRelease);  // They are MessagePack-RPC's.
      } else if (row.type == RequestType::kPing) {
        CHECK((status == TokenStatus::kFail) == !own);
      } else {
        CHECK((status == TokenStatus::kFail) == (std::string(which) == "other"));
      }
      CHECK(t.StillThere());
    }
  }
}

TEST_CASE("without a hello a connection is in the namespace that it would get") {
  EngineHarness h;
  h.SetAccess({PrincipalEntry("checkout", Role::kClient, {{"shop"}})});
  const ConnectionId id = h.ConnectAs("checkout");
  CHECK(h.Call(id, AcquireRequest(2, 9)).ErrorText() ==
        "PERMISSION: acquire is about namespace 'default', which checkout may not reach");
  CHECK(h.Call(id, HelloRequest(1, "bank", "a")).ErrorText() ==
        "PERMISSION: hello is about namespace 'bank', which checkout may not reach");
  CHECK(h.Call(id, PlainRequest(3, Method::kPing)).ErrorText() == "ok");
  CHECK(h.Call(id, HelloRequest(1, "shop", "a")).ErrorText() == "ok");
  CHECK(h.Call(id, AcquireRequest(2, 1)).ErrorText() ==
        "PERMISSION: acquire is about flow_id 1, which checkout may not reach");
  CHECK(h.Call(id, AcquireRequest(2, 9)).acquire().status == TokenStatus::kNoRuleExists);
}

TEST_CASE("a notification that is refused changes nothing") {
  EngineHarness h;
  h.SetAccess({PrincipalEntry("owner", Role::kClient), PrincipalEntry("eve", Role::kObserver)});
  const uint64_t token = h.Take(h.ConnectAs("owner"));
  const ConnectionId observer = h.ConnectAs("eve");
  std::string release = "\x93\x02\xa7release\x91\xcf";  // [2, "release", [token]]
  AppendBigEndian(&release, token);
  h.Send(observer, release);
  h.Settle();
  CHECK(h.TakeReplies(observer).empty());
  CHECK(h.core().flows().at(core::OnlyFlow(h.core().flows(), 1)).lane.now_calls == 1);
}

}  // namespace
}  // namespace nowcalls::engine
