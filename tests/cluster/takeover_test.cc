// Members that take over from each other, with real processes and a real etcd.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "cluster/claimed_log.h"
#include "etcd/client.h"
#include "integration/calls.h"
#include "support/certificates.h"
#include "support/members.h"
#include "support/poll_until.h"
#include "support/process.h"

namespace nowcalls::testing {
namespace {

const Json kRules = Json::array({RuleJson(1, 10)});

TEST_CASE("a standby takes over from a writer that was killed, with all that was answered") {
  Members members(2);
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  const Grant grant = Acquire(&alice, 1, 4);
  CHECK(grant.status == kStatusOk);
  CHECK_FALSE(RpcClient(members.address(1)).connected());
  for (size_t writer = 0; writer < 2; ++writer) {
    members.member(writer).Kill9();
    const size_t next = members.AwaitWriter(writer);
    CHECK(next == 1 - writer);
    members.member(writer).StartWithoutWaiting();
    RpcClient again = members.Connect(next, "alice");
    CHECK(NowCalls(&again, 1) == 4);
    CHECK(Acquire(&again, 1, 7).status == kStatusBlocked);
  }
  RpcClient last = members.Connect(members.AwaitWriter(), "alice");
  CHECK(Release(&last, grant.token_id) == kStatusReleaseOk);
  CHECK(Acquire(&last, 1, 10).fence > grant.fence);
}

TEST_CASE("an orderly end hands over, and a member that comes back stands by") {
  Members members(3);
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  Acquire(&alice, 1, 1);
  CHECK(members.member(0).Terminate() == 0);
  const size_t second = members.AwaitWriter(0);
  members.member(0).StartWithoutWaiting();
  CHECK(members.member(0).LogHas(members.address(second) + " writes in term"));
  CHECK(members.member(second).Terminate() == 0);
  const size_t third = members.AwaitWriter(second);
  RpcClient again = members.Connect(third, "alice");
  CHECK(NowCalls(&again, 1) == 1);
  // Standbys end in good order, too.
  for (size_t number = 0; number < 3; ++number) {
    if (number != second) CHECK(members.member(number).Terminate() == 0);
  }
}

// Until the server has answers that it cannot send.
void AskWithoutReading(RpcClient* client) {
  std::string pings;
  for (uint32_t i = 0; i < 10'000; ++i) pings += EncodeRequest(i, "ping", Json::array());
  constexpr int64_t kStuckMs = 200;
  while (client->SendRaw(pings, kStuckMs)) continue;
}

TEST_CASE("a client that reads nothing holds a handover up less than the end of a single server") {
  TestServer alone;
  RpcClient there = alone.Connect();
  AskWithoutReading(&there);
  Members members(1);
  members.StartAll();
  RpcClient here = members.Connect(0, "alice");
  AskWithoutReading(&here);
  alone.server().process().Signal(SIGTERM);
  CHECK(members.member(0).Terminate() == 0);
  CHECK(alone.server().Running());
  CHECK(alone.server().process().Wait() == 0);
}

TEST_CASE("a writer that stood still finds itself deposed, answers nobody, and stands by") {
  Members members(2);
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  members.member(0).process().Stop();
  alice.Send("acquire", {1, 1});
  const size_t writer = members.AwaitWriter(0);
  REQUIRE(writer == 1);
  members.member(0).process().Signal(SIGCONT);
  CHECK(alice.Receive().kind == Reply::Kind::kClosed);
  CHECK(members.member(0).LogHas(members.address(1) + " writes in term"));
  RpcClient again = members.Connect(1, "alice");
  CHECK(NowCalls(&again, 1) == 0);
  CHECK(Acquire(&again, 1, 1).status == kStatusOk);
  // And takes over once more.
  members.member(1).Kill9();
  RpcClient last = members.Connect(members.AwaitWriter(1), "alice");
  CHECK(NowCalls(&last, 1) == 1);
}

TEST_CASE("a writer that is ending when its lease is over without etcd ends in good order") {
  Members members(2);
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  Acquire(&alice, 1, 3);
  members.etcd().Stop();
  alice.Send("acquire", {1, 1});  // Its batch waits for etcd, and the end for its batch.
  SUBCASE("SIGTERM") { CHECK(members.member(0).Terminate() == 0); }
  SUBCASE("a handover") {
    alice.Send("handover", Json::array());
    CHECK(members.member(0).LogHas("is deposed in term 1"));
    CHECK(members.member(0).Running());
  }
  members.etcd().Signal(SIGCONT);
  RpcClient again = members.Connect(members.AwaitWriter(), "alice");
  CHECK(NowCalls(&again, 1) >= 3);
}

TEST_CASE("while etcd is away nobody serves, and everything goes on when it is back") {
  Members members(2);
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  Acquire(&alice, 1, 3);
  members.etcd().Kill();
  CHECK(PollUntil(kPatienceMs, [&] { return !members.Serves(0); }));
  members.etcd().Start();
  RpcClient again = members.Connect(members.AwaitWriter(), "alice");
  CHECK(NowCalls(&again, 1) == 3);
  CHECK(Acquire(&again, 1, 3).status == kStatusOk);
}

TEST_CASE("of members that start at once on an empty prefix one serves") {
  Members members(3);
  for (size_t number = 0; number < 3; ++number) members.member(number).StartWithoutWaiting();
  const size_t writer = members.AwaitWriter();
  RpcClient alice = members.Connect(writer, "alice");
  LoadRules(&alice, kRules);
  Acquire(&alice, 1, 3);
  for (size_t number = 0; number < 3; ++number) {
    if (number == writer) continue;
    CHECK(members.member(number).LogHas(members.address(writer) + " writes in term"));
    CHECK_FALSE(RpcClient(members.address(number)).connected());
  }
  members.member(writer).Kill9();
  RpcClient again = members.Connect(members.AwaitWriter(writer), "alice");
  CHECK(NowCalls(&again, 1) == 3);
}

TEST_CASE("a ledger of a single server begins a cluster, and another such ledger is refused") {
  Members members(2);
  for (size_t number = 0; number < 2; ++number) {
    ServerProcess& member = members.member(number);
    const std::vector<std::string> of_cluster = std::exchange(member.options().arguments, {});
    member.Start();
    RpcClient alice = members.Connect(number, "alice");
    LoadRules(&alice, kRules);
    Acquire(&alice, 1, 2);
    CHECK(member.Terminate() == 0);
    member.options().arguments = of_cluster;
  }
  members.member(0).Start();
  RpcClient again = members.Connect(0, "alice");
  CHECK(NowCalls(&again, 1) == 2);
  members.member(1).StartWithoutWaiting();
  CHECK(members.member(1).process().Wait() == 65);
  CHECK(members.member(1).LogHas("is another cluster"));
  // And a member becomes a single server only when somebody says so.
  CHECK(members.member(0).Terminate() == 0);
  members.member(0).options().arguments.clear();
  members.member(0).StartWithoutWaiting();
  CHECK(members.member(0).process().Wait() == 65);
  unlink((members.member(0).data_dir() + "/cluster.json").c_str());
  members.member(0).Start();
  RpcClient alone = members.Connect(0, "alice");
  CHECK(NowCalls(&alone, 1) == 2);
}

TEST_CASE("a member without the ledger takes a copy of it, and then takes over") {
  Members members(2);
  ServerProcess& first = members.member(0);
  const std::vector<std::string> of_cluster = std::exchange(first.options().arguments, {});
  first.Start();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  const Grant grant = Acquire(&alice, 1, 2);
  CHECK(first.Terminate() == 0);
  first.options().arguments = of_cluster;
  first.Start();
  members.member(1).StartWithoutWaiting();
  CHECK(members.member(1).LogHas("takes a copy of the ledger from " + members.address(0)));
  CHECK(members.member(1).LogHas(members.address(1) + " stands by: "));
  first.Kill9();
  RpcClient again = members.Connect(members.AwaitWriter(0), "alice");
  CHECK(NowCalls(&again, 1) == 2);
  CHECK(Release(&again, grant.token_id) == kStatusReleaseOk);
}

// The rights come from a file; the members are let in by what etcd tells them.
TEST_CASE("with TLS and an access file a member takes its copy by the members' secret") {
  const TempDir dir;
  const Authority authority("authority");
  const auto files =
      WriteCertificate(dir.path(), "member",
                       authority.Issue({.common_name = "member", .names = {{'I', "127.0.0.1"}}}));
  WriteStringToFile(dir.Sub("ca.pem"), authority.certificate());
  const std::string access = dir.Sub("access.toml");
  const Finished added = RunProgram({ProductBinary("nowcalls-admin"), "access", "add", "ann",
                                     "--role", "administrator", "--access", access});
  REQUIRE(added.exit_code == 0);
  Members members(2, {"--tls-cert", files.certificate, "--tls-key", files.key, "--access", access,
                      "--cluster-peer-ca", dir.Sub("ca.pem")});
  // A ledger of its own makes the second member need a copy.
  ServerProcess& first = members.member(0);
  const std::vector<std::string> of_cluster = std::exchange(first.options().arguments, {});
  first.Start();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  Acquire(&alice, 1, 2);
  CHECK(first.Terminate() == 0);
  first.options().arguments = of_cluster;
  first.Start();
  RpcClient nobody(members.address(0));
  CHECK(nobody.Call("copy").error_name == "PERMISSION");
  members.member(1).StartWithoutWaiting();
  CHECK(members.member(1).LogHas(members.address(1) + " stands by: "));
  CHECK(Contains(first.log(), "administrator 127.0.0.1:"));
  // No secret is in the log.
  CHECK_FALSE(Contains(members.Logs(), "secret"));
  CHECK(members.member(1).Terminate() == 0);
}

TEST_CASE("a member that was left behind by the log takes a copy, whoever else lives") {
  Members members(3, {"--cluster-log-bytes-max", "16777216"});
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kRules);
  // In good order, so that the others do not keep the log for it.
  CHECK(members.member(1).Terminate() == 0);
  // More bytes than the log keeps for members that are away, then enough small batches.
  Json many = Json::array();
  for (int64_t flow = 1; flow <= 200; ++flow) many.push_back(RuleJson(flow, 10));
  for (int i = 0; i < 130; ++i) {
    for (Json& rule : many) rule["count"] = 10 + i;
    ResultOf(&alice, "rules_load", {"default", many.dump()});
  }
  // The writer hears once a second what the others have on disk, and forgets with its appends.
  etcd::Client etcd({.endpoints = {members.etcd().address()}});
  const cluster::ClaimedLog log(*cluster::Keys::Under("test"));
  CHECK(PollUntil(kPatienceMs, [&] {
    for (int i = 0; i < 20; ++i) Release(&alice, Acquire(&alice, 1, 1).token_id);
    const auto reply = etcd.Commit(log.Look());
    return reply.ok() && log.ViewOf(*reply)->first > 10;
  }));
  const Grant last = Acquire(&alice, 2, 5);
  const size_t logged = members.member(1).log().size();
  members.member(1).StartWithoutWaiting();
  CHECK(members.member(1).LogHas("takes a copy of the ledger from " + members.address(0)));
  CHECK(PollUntil(kPatienceMs, [&] {
    return Contains(members.member(1).log().substr(logged), " stands by: ");
  }));
  members.member(2).Kill9();
  members.member(0).Kill9();
  RpcClient again = members.Connect(members.AwaitWriter(), "alice");
  CHECK(NowCalls(&again, 2) == 5);
  CHECK(Release(&again, last.token_id) == kStatusReleaseOk);
}

}  // namespace
}  // namespace nowcalls::testing
