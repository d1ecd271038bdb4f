// Every row of the tables of methods, asked by principals of every role.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "access/access.h"
#include "base/bytes.h"
#include "engine/rpc/methods.h"
#include "engine/sentinel/requests.h"
#include "support/engine_harness.h"
#include "support/only_flow.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::engine {
namespace {

using access::Principal;
using access::Role;
using testing::AcquireRequest;
using testing::EngineHarness;
using testing::EngineReply;
using testing::HelloRequest;
using testing::PlainRequest;

constexpr Role kRoles[] = {Role::kAnybody, Role::kObserver, Role::kClient, Role::kAdministrator};

TEST_CASE("a method is refused to a role below its own before anything is done") {
  for (const Role role : kRoles) {
    for (const rpc::MethodRow& method : rpc::AllMethods()) {
      CAPTURE(access::RoleName(role));
      CAPTURE(wire::MethodName(method.id));
      EngineHarness h;
      h.identify = [&](const net::Peer&) { return Principal{.name = "eve", .role = role}; };
      const EngineReply reply = h.Call(h.Connect(), PlainRequest(7, method.id));
      const bool refused = reply.error && reply.error->code == wire::ErrorCode::kPermission;
      CHECK(refused == (role < method.needs.role));
      if (!refused) continue;
      CHECK(reply.ErrorText() == "PERMISSION: " + std::string(wire::MethodName(method.id)) +
                                     " needs the role " +
                                     std::string(access::RoleName(method.needs.role)) +
                                     ", and eve is " + std::string(access::RoleName(role)));
    }
  }
}

TEST_CASE("a client of some namespaces is refused in the others") {
  EngineHarness h;
  h.identify = [](const net::Peer&) {
    return Principal{.name = "checkout", .role = Role::kClient, .namespaces = {{"default"}}};
  };
  const ConnectionId own = h.Connect();
  h.Call(own, HelloRequest(1, "default", "a"));
  CHECK(h.Call(own, AcquireRequest(2, 1)).ErrorText() == "ok");
  const ConnectionId other = h.Connect();
  CHECK(h.Call(other, HelloRequest(1, "shop", "a")).ErrorText() ==
        "PERMISSION: hello is about namespace 'shop', which checkout may not reach");
  CHECK(h.Call(other, PlainRequest(3, wire::Method::kPing)).ErrorText() == "ok");
}

TEST_CASE("without a hello a connection is in the namespace that it would get") {
  EngineHarness h;
  h.identify = [](const net::Peer&) {
    return Principal{.name = "checkout", .role = Role::kClient, .namespaces = {{"shop"}}};
  };
  CHECK(h.Call(h.Connect(), AcquireRequest(2, 1)).ErrorText() ==
        "PERMISSION: acquire is about namespace 'default', which checkout may not reach");
}

TEST_CASE("a notification that is refused changes nothing") {
  EngineHarness h;
  Role role = Role::kClient;
  h.identify = [&](const net::Peer&) { return Principal{.name = "eve", .role = role}; };
  const ConnectionId owner = h.Connect();
  const uint64_t token = h.Take(owner);
  role = Role::kObserver;
  const ConnectionId observer = h.Connect();
  std::string release = "\x93\x02\xa7release\x91\xcf";  // [2, "release", [token]]
  AppendBigEndian(&release, token);
  h.Send(observer, release);
  h.Settle();
  CHECK(h.TakeReplies(observer).empty());
  CHECK(h.core().flows().at(core::OnlyFlow(h.core().flows(), 1)).lane.now_calls == 1);
}

TEST_CASE("a request of Sentinel's is answered FAIL to a role below its own") {
  for (const Role role : kRoles) {
    for (const sentinel::RequestRow& row : sentinel::kRequests) {
      CAPTURE(access::RoleName(role));
      CAPTURE(static_cast<int>(row.type));
      EngineHarness h;
      h.identify = [&](const net::Peer&) { return Principal{.role = role}; };
      const ConnectionId id = h.Connect();
      wire::OutputBuffer request;
      if (row.type == wire::sentinel::RequestType::kPing) {
        wire::sentinel::EncodePingRequest(1, "default", &request);
      } else {
        wire::sentinel::EncodeCallRequest(1, row.type, {1, 1, false}, &request);
      }
      h.Send(id, request.view());
      h.Settle();
      std::string_view bytes = h.driver().socket(id).written;
      wire::sentinel::Response response;
      REQUIRE(wire::sentinel::TakeResponse(&bytes, &response) == wire::sentinel::Answer::kWhole);
      CHECK((response.status == TokenStatus::kFail) == (role < row.needs.role));
    }
  }
}

}  // namespace
}  // namespace nowcalls::engine
