// What an operator of a cluster sees and asks for: status, handovers, page, metrics, alerts.
#include <doctest/doctest.h>
#include <signal.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/members.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

const Json kOneRule = Json::array({RuleJson(1, 10)});

Source Everybody(const Members& members) {
  std::string addresses;
  for (size_t number = 0; number < members.count(); ++number) {
    addresses += (number > 0 ? "," : "") + members.address(number);
  }
  return Source::Live(addresses);
}

// Until the writer hears of all, and each has the whole log.
std::vector<Json> AwaitAll(const Members& members) {
  std::vector<Json> rows;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    rows = AdminRows(Everybody(members), {"cluster"});
    size_t caught_up = 0;
    for (const Json& row : rows) caught_up += row.at("lag_batches") == 0 ? 1 : 0;
    return caught_up == members.count();
  }));
  return rows;
}

Finished HandOver(const Members& members) {
  return RunAdmin(Everybody(members), {"cluster", "handover"});
}

TEST_CASE("a handover goes to a standby, which goes on with all that is held") {
  Members members(2);
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kOneRule);
  const Grant grant = Acquire(&alice, 1, 4);
  const std::vector<Json> rows = AwaitAll(members);
  const Json& first = rows[rows[0].at("address") == members.address(0) ? 0 : 1];
  CHECK(first.at("role") == "writer");
  CHECK(first.at("term") == 1);
  CHECK(first.at("last_batch") == first.at("applied"));
  CHECK(first.at("log_bytes_max") == 256 << 20);
  CHECK(first.at("prefix") == "/test");
  const Json& second = rows[rows[0].at("address") == members.address(0) ? 1 : 0];
  CHECK(second.at("address") == members.address(1));
  CHECK(second.at("role") == "standby");

  const Finished there = HandOver(members);
  CHECK_MESSAGE(there.exit_code == 0, there.err);
  CHECK(there.out.starts_with(members.address(1) + " serves in term 2, after "));
  CHECK(there.out.ends_with("; " + members.address(0) + " stands by\n"));
  RpcClient again = members.Connect(1, "alice");
  CHECK(NowCalls(&again, 1) == 4);
  CHECK(Acquire(&again, 1, 7).status == kStatusBlocked);
  // The process goes on, and each says why.
  CHECK(members.member(0).LogHas(members.address(1) + " writes in term 2"));
  const std::string of_first = members.member(0).log();
  CHECK(Contains(of_first, " asked for a handover\n"));
  CHECK(Contains(of_first, members.address(0) + " hands over in term 1: administrator "));
  CHECK(Contains(members.member(1).log(), members.address(1) + " takes over in term 2: " +
                                              members.address(0) + " handed over\n"));

  AwaitAll(members);
  const Finished back = HandOver(members);
  CHECK_MESSAGE(back.exit_code == 0, back.err);
  CHECK(back.out.starts_with(members.address(0) + " serves in term 3, after "));
  RpcClient last = members.Connect(0, "alice");
  CHECK(Release(&last, grant.token_id) == kStatusReleaseOk);
  CHECK(NowCalls(&last, 1) == 0);
}

TEST_CASE("a handover is refused where nobody could take over") {
  Members members(2);
  members.member(0).Start();
  const Finished alone = HandOver(members);
  CHECK(alone.exit_code == 1);
  CHECK(alone.err ==
        "nowcalls-admin: OVERLOADED: handover: no other member of the cluster lives: start one "
        "before\n");
  members.member(1).StartWithoutWaiting();
  AwaitAll(members);
  // It leaves the list ten seconds later.
  members.member(1).Kill9();
  CHECK(PollUntil(kPatienceMs, [&] {
    const auto rows = AdminRows(Everybody(members), {"cluster"});
    return rows.size() < 2 || rows[0].at("silent_ms") > 3'000 || rows[1].at("silent_ms") > 3'000;
  }));
  const Finished dead = HandOver(members);
  CHECK(dead.exit_code == 1);
  CHECK(Contains(dead.err, "OVERLOADED: handover: no other member "));
  CHECK(members.Serves(0));
  CHECK(Contains(members.member(0).log(), "asked for a handover, and was refused: no other"));
}

TEST_CASE("a writer serves again when nobody has taken what it handed over") {
  Members members(2);
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kOneRule);
  Acquire(&alice, 1, 4);
  AwaitAll(members);
  members.member(1).process().Stop();
  const Finished handover = HandOver(members);
  CHECK(handover.exit_code == 1);
  CHECK(handover.err.starts_with("nowcalls-admin: no other member took over: " +
                                 members.address(0) + " serves again in term 2, after "));
  RpcClient again = members.Connect(0, "alice");
  CHECK(NowCalls(&again, 1) == 4);
}

TEST_CASE("a member that was asked to end while it hands over ends") {
  Members members(2);
  members.StartAll();
  AwaitAll(members);
  RpcClient admin(members.address(0));
  CHECK(admin.Call("handover").ok());
  CHECK(members.member(0).Terminate() == 0);
  CHECK(members.AwaitWriter(0) == 1);
}

TEST_CASE("each change of role is logged with its term and why") {
  Members members(2);
  members.StartAll();
  CHECK(Contains(members.member(0).log(), " takes over in term 1: it begins the cluster\n"));
  CHECK(members.member(0).LogHas(" serves in term 1\n"));
  members.member(0).process().Stop();
  REQUIRE(members.AwaitWriter(0) == 1);
  CHECK(members.member(1).LogHas(" takes over in term 2: the lease of " + members.address(0) +
                                 " in term 1 has ended\n"));
  members.member(0).process().Signal(SIGCONT);
  CHECK(members.member(0).LogHas(" is deposed in term 1: etcd did not renew its lease in time\n"));
  CHECK(members.member(0).LogHas(members.address(1) + " writes in term 2\n"));
  CHECK(members.member(1).Terminate() == 0);
  CHECK(members.member(1).LogHas(" hands over in term 2: SIGTERM\n"));
  REQUIRE(members.AwaitWriter(1) == 0);
  CHECK(
      members.member(0).LogHas(" takes over in term 3: " + members.address(1) + " handed over\n"));
}

// Of a member with --http.
std::string Ask(ServerProcess* member, const std::string& path) {
  REQUIRE(member->LogHas("page, metrics and health on "));
  std::smatch found;
  const std::string log = member->log();
  REQUIRE(std::regex_search(log, found, std::regex("health on (http://[0-9.:]+)/")));
  return RunProgram({"/usr/bin/curl", "-s", found[1].str() + path}).out;
}

TEST_CASE("the page of each member is live, and shows the cluster") {
  Members members(2, {"--http", "127.0.0.1:0"});
  members.StartAll();
  AwaitAll(members);
  const auto server = [&](size_t number) {
    return Json::parse(Ask(&members.member(number), "/api/server"));
  };
  Json writer;
  CHECK(PollUntil(kPatienceMs, [&] {
    writer = server(0);
    return writer.at("cluster").is_object() && writer.at("cluster").at("members").size() == 2;
  }));
  CHECK(writer.at("cluster").at("role") == "writer");
  CHECK(writer.at("cluster").at("writer") == members.address(0));
  CHECK_FALSE(writer.contains("standby"));
  const Json standby = server(1);
  CHECK(standby.at("standby") ==
        "this member of the cluster stands by, and " + members.address(0) + " writes");
  CHECK(standby.at("cluster").at("role") == "standby");
  CHECK(standby.at("cluster").at("term") == 1);
  CHECK(standby.at("cluster").at("lag_batches") == 0);
  // Another look each second, though there is no server to look at.
  CHECK(PollUntil(kPatienceMs, [&] { return server(1).at("number") > standby.at("number"); }));
}

TEST_CASE("a standby is ready for a probe with standby=ok while it follows the log") {
  Members members(2, {"--http", "127.0.0.1:0"});
  members.StartAll();
  AwaitAll(members);
  const auto status = [&](size_t number, const std::string& path) {
    return Json::parse(Ask(&members.member(number), path)).at("status");
  };
  CHECK(status(0, "/readyz") == "ok");
  CHECK(status(0, "/readyz?standby=ok") == "ok");
  CHECK(status(1, "/readyz") == "failing");
  CHECK(PollUntil(kPatienceMs, [&] { return status(1, "/readyz?standby=ok") == "ok"; }));
  members.etcd().Kill();
  CHECK(PollUntil(kPatienceMs, [&] { return status(1, "/readyz?standby=ok") == "failing"; }));
  CHECK(status(1, "/healthz") == "ok");
}

TEST_CASE("a writer that was deposed during a commit does not tell of a commit that hangs") {
  // By the commit thread, which leaves the loop its look at the claim.
  Members members(2, {"--http", "127.0.0.1:0", "--commit-inline-records-max", "0"});
  members.StartAll();
  RpcClient alice = members.Connect(0, "alice");
  LoadRules(&alice, kOneRule);
  members.etcd().Stop();
  alice.Send("acquire", {1, 1});
  CHECK(alice.Receive().kind == Reply::Kind::kClosed);
  CHECK(members.member(0).LogHas(" is deposed in term 1: etcd did not renew its lease in time\n"));
  // Nobody leads as long as etcd stands still.
  const Json health = Json::parse(Ask(&members.member(0), "/healthz"));
  CHECK(health.at("phase") == "standby");
  CHECK(health.at("commit_under_way_ms") == 0);
  members.etcd().Signal(SIGCONT);
}

TEST_CASE("every metric of a cluster that an alert names is there") {
  Members members(2, {"--http", "127.0.0.1:0"});
  members.StartAll();
  const std::string alerts =
      ReadFileToString(std::string(NOWCALLS_SOURCE_DIR) + "/data/monitoring/alerts.yml");
  const std::regex name("nowcalls_cluster_[a-z_]+");
  const std::set<std::string> named(std::sregex_token_iterator(alerts.begin(), alerts.end(), name),
                                    std::sregex_token_iterator());
  CHECK(named.size() > 4);
  for (size_t number = 0; number < 2; ++number) {
    const std::string metrics = Ask(&members.member(number), "/metrics");
    for (const std::string& metric : named) {
      CHECK_MESSAGE(Contains(metrics, "\n" + metric + " "), metric);
    }
  }
  // Requests that etcd does not answer are counted.
  members.etcd().Kill();
  CHECK(PollUntil(kPatienceMs, [&] {
    return std::regex_search(Ask(&members.member(1), "/metrics"),
                             std::regex("\nnowcalls_cluster_etcd_failures_total [1-9]"));
  }));
}

}  // namespace
}  // namespace nowcalls::testing
