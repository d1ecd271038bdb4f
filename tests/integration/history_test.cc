// The history of reclaims and what administrators do to many tokens: real server, real tool, live
// and from the files.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/machine.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

Source Live(const TestServer& server) { return Source::Live(server.address()); }
Source Offline(const TestServer& server) { return Source::Offline(server.data_dir()); }

std::vector<std::string> Reasons(const std::vector<Json>& rows) {
  std::vector<std::string> reasons;
  reasons.reserve(rows.size());
  for (const auto& row : rows) reasons.push_back(row.at("reason").get<std::string>());
  return reasons;
}

// Three rules: tokens of 1 time out soon, absent clients lose those of 2 soon, and those of 3 may
// be released late for a long while.
Json QuickRules() {
  return {RuleJson(1, 100, {{"resourceTimeout", 200}}),
          RuleJson(2, 100, {{"clientOfflineTime", 300}}),
          RuleJson(3, 100, {{"resourceTimeout", 1500}})};
}

size_t HistorySize(RpcClient* client) { return ListAll(client, "history").size(); }

void WaitForHistory(RpcClient* client, size_t entries) {
  REQUIRE(PollUntil(kPatienceMs, [&] { return HistorySize(client) >= entries; }));
}

TEST_CASE("calls that failed or timed out are counted and told, live and after kill -9 alike") {
  TestServer server(QuickRules());
  RpcClient alice = server.Connect("alice");
  Release(&alice, Acquire(&alice, 3).token_id);
  const auto release = [&alice](uint64_t token, const char* outcome) {
    return ResultOf(&alice, "release", {token, {{"outcome", outcome}}}).at(0);
  };
  const uint64_t failed = Acquire(&alice, 3).token_id;
  CHECK(release(failed, "failed") == kStatusReleaseOk);
  CHECK(release(failed, "failed") == kStatusAlreadyRelease);
  CHECK(release(Acquire(&alice, 3).token_id, "timeout") == kStatusReleaseOk);
  CHECK(release(Acquire(&alice, 3).token_id, "ok") == kStatusReleaseOk);
  CHECK(ErrorOf(&alice, "release", {failed, {{"outcome", "lost"}}}).error_name == "BAD_PARAMS");
  const Json counters = ResultOf(&alice, "flow", Json::array({3})).at("counters");
  CHECK(counters.at("outcomes") == Json({{"failed", 1}, {"timeout", 1}}));
  CHECK(counters.at("ended").at("released") == 4);
  CHECK(ResultOf(&alice, "info").at("totals").at("outcomes") ==
        Json({{"failed", 1}, {"timeout", 1}}));
  const auto outcomes = [](const Source& source) {
    std::vector<std::string> words;
    for (const Json& row : AdminRows(source, {"history", "--reason", "released"})) {
      words.push_back(row.at("outcome").get<std::string>());
    }
    return words;
  };
  const std::vector<std::string> both = {"timeout", "failed"};
  CHECK(outcomes(Live(server)) == both);
  server.server().Kill9();
  CHECK(outcomes(Offline(server)) == both);
  server.server().Start();
  CHECK(outcomes(Live(server)) == both);
}

TEST_CASE("every way a token ends but a release in time is told, live and after kill -9 alike") {
  Json rules = QuickRules();
  rules.push_back(RuleJson(4, 100));
  Machine machine;  // What is released late must not be reclaimed while the disk stalls.
  machine.control().sync_is_free = 1;
  TestServer server(rules, {{"--resource-timeout-factor", "3"}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  RpcClient watcher = server.Connect();
  Release(&alice, Acquire(&alice, 2).token_id);
  {
    RpcClient bob = server.Connect("bob");
    Acquire(&bob, 2, 2);
  }
  WaitForHistory(&watcher, 1);
  Acquire(&alice, 1, 3);
  WaitForHistory(&watcher, 2);
  const uint64_t stuck = Acquire(&alice, 2, 4).token_id;
  CHECK(RunAdmin(Live(server), {"reclaim", std::to_string(stuck), "--reason", "job, \"died\""})
            .exit_code == 0);
  Acquire(&alice, 4, 5);
  LoadRules(&watcher, QuickRules());
  CHECK(RunAdmin(Live(server), {"purge", "--flow", "4", "--yes"}).exit_code == 0);
  const uint64_t late = Acquire(&alice, 3, 6).token_id;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    return !ResultOf(&watcher, "tokens", {{{"min_age_ms", 1501}}}).at(0).empty();
  }));
  CHECK(Release(&alice, late) == kStatusReleaseOk);

  const auto live = AdminRows(Live(server), {"history"});
  CHECK(Reasons(live) == std::vector<std::string>{"released_late", "rule_removed", "admin",
                                                  "resource_timeout", "client_offline"});
  const std::string csv = RunAdmin(Live(server), {"history", "--format", "csv"}).out;
  server.server().Kill9();
  CHECK(AdminRows(Offline(server), {"history"}) == live);
  CHECK(RunAdmin(Offline(server), {"history", "--format", "csv"}).out == csv);
  for (size_t i = 0; i < live.size(); ++i) {
    const Json& row = live[i];
    CAPTURE(row.dump());
    CHECK(row.at("sequence") == live.size() - i);
    CHECK(row.at("count") == 6 - i);
    CHECK(row.at("client_id") == (i == 4 ? "bob" : "alice"));
    CHECK(row.at("namespace") == "default");
    CHECK(row.at("held_ms").get<int64_t>() ==
          row.at("ended_ms").get<int64_t>() - row.at("issued_ms").get<int64_t>());
    CHECK(row.at("note") == (i == 2 ? "job, \"died\"" : ""));
  }
  CHECK(live[2].at("token_id") == stuck);
  CHECK(RunAdmin(Offline(server), {"verify"}).out.find(", 5 history rows, ") != std::string::npos);
  server.server().Start();
  CHECK(AdminRows(Live(server), {"history"}) == live);
}

TEST_CASE("chosen flows and namespaces have a line of the log for each token that ends") {
  Machine machine;  // What is released in time must not be late while the disk stalls.
  machine.control().sync_is_free = 1;
  TestServer server(
      {RuleJson(1, 100), RuleJson(2, 100), RuleJson(3, 100)},
      {{"--log-format", "json", "--log-ends", "1", "--log-ends", "bank"}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob", "bank");
  const auto released = Acquire(&alice, 1, 4);
  Release(&alice, released.token_id);
  Release(&alice, Acquire(&alice, 2).token_id);  // Not chosen.
  const uint64_t taken_back = Acquire(&bob, 3).token_id;
  CHECK(RunAdmin(Live(server), {"reclaim", std::to_string(taken_back), "--reason", "job died"})
            .exit_code == 0);
  const auto history = AdminRows(Live(server), {"history"});
  REQUIRE(history.size() == 1);
  CHECK(server.server().Terminate() == 0);

  std::vector<Json> ends;
  for (const auto& line : ParseJsonLines(server.server().log())) {
    if (line.contains("held_ms")) ends.push_back(line);
  }
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].at("token") == std::to_string(released.token_id));
  CHECK(ends[0].at("flow") == 1);
  CHECK(ends[0].at("namespace") == "default");
  CHECK(ends[0].at("client") == "alice");
  CHECK(ends[0].at("count") == 4);
  CHECK(ends[0].at("fence") == released.fence);
  CHECK(ends[0].at("reason") == "released");
  CHECK(ends[1].at("token") == std::to_string(taken_back));
  CHECK(ends[1].at("client") == "bob");
  CHECK(ends[1].at("namespace") == "bank");
  CHECK(ends[1].at("reason") == "admin");
  for (const char* same : {"count", "fence", "held_ms", "issued_ms"}) {
    CAPTURE(same);
    CHECK(ends[1].at(same) == history[0].at(same));
  }
}

TEST_CASE("history is filtered and limited alike, live and offline") {
  TestServer server({RuleJson(1, 100), RuleJson(2, 100)});
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob", "other");
  for (int i = 0; i < 4; ++i) {
    RpcClient* client = i < 2 ? &alice : &bob;
    const std::string token = std::to_string(Acquire(client, 1 + i % 2).token_id);
    REQUIRE(RunAdmin(Live(server), {"reclaim", token, "--reason", "test"}).exit_code == 0);
  }
  for (const bool is_live : {true, false}) {
    if (!is_live) server.server().Kill9();
    const auto numbers = [&](std::vector<std::string> filter) {
      filter.insert(filter.begin(), "history");
      std::vector<int> sequences;
      for (const auto& row : AdminRows(is_live ? Live(server) : Offline(server), filter)) {
        sequences.push_back(row.at("sequence").get<int>());
      }
      return sequences;
    };
    using Numbers = std::vector<int>;
    CHECK(numbers({}) == Numbers{4, 3, 2, 1});
    CHECK(numbers({"--limit", "2"}) == Numbers{4, 3});
    CHECK(numbers({"--flow", "1"}) == Numbers{3, 1});
    CHECK(numbers({"--client", "alice"}) == Numbers{2, 1});
    CHECK(numbers({"--namespace", "other", "--flow", "2"}) == Numbers{4});
    CHECK(numbers({"--reason", "admin"}) == Numbers{4, 3, 2, 1});
    CHECK(numbers({"--reason", "client_offline"}).empty());
    CHECK(numbers({"--since", "1h"}) == Numbers{4, 3, 2, 1});
    CHECK(numbers({"--since", "2h", "--until", "1h"}).empty());
    CHECK(numbers({"--until", "1h"}).empty());
  }
  const std::string table = RunAdmin(Offline(server), {"history", "--format", "table"}).out;
  CHECK(table.starts_with("ENDED_AGO  REASON "));
  CHECK(RunAdmin(Offline(server), {"history", "--reason", "cancelled"}).exit_code == 64);
}

TEST_CASE("the history holds as many entries as it is set to, and fewer after a smaller setting") {
  TestServer server(RuleJson(1, 100), {{"--history-max", "3"}, {}});
  const auto sequences = [&](const Source& source) {
    std::vector<int> numbers;
    for (const auto& row : AdminRows(source, {"history"})) {
      numbers.push_back(row.at("sequence").get<int>());
    }
    return numbers;
  };
  RpcClient alice = server.Connect("alice");
  for (int i = 0; i < 5; ++i) {
    const uint64_t token = Acquire(&alice, 1).token_id;
    CHECK(ResultOf(&alice, "reclaim", {token, "test"}).at(0) == kStatusReleaseOk);
  }
  CHECK(sequences(Live(server)) == std::vector<int>{5, 4, 3});
  server.server().options().arguments = {"--history-max", "1"};
  server.server().Restart();
  RpcClient again = server.Connect("alice");
  REQUIRE(PollUntil(kPatienceMs, [&] { return HistorySize(&again) == 1; }));
  CHECK(ResultOf(&again, "info").at("limits").at("history_max") == 1);
  ResultOf(&again, "reclaim", {Acquire(&again, 1).token_id, "test"});
  CHECK(sequences(Live(server)) == std::vector<int>{6});
  server.server().Kill9();
  CHECK(sequences(Offline(server)) == std::vector<int>{6});
  server.server().options().arguments = {"--history-max", "0"};
  server.server().Start();
  CHECK(server.server().Terminate() == 0);
  CHECK(sequences(Offline(server)).empty());
  CHECK(RunAdmin(Offline(server), {"verify"}).exit_code == 0);
}

TEST_CASE("thousands of a client's tokens are taken back in pieces, and others keep theirs") {
  TestServer server({RuleJson(1, 1'000'000), RuleJson(2, 100)});
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob");
  AcquireMany(&alice, 1, 3500);
  Acquire(&alice, 2, 7);
  Acquire(&bob, 1, 5);
  const std::vector<std::string> command = {"reclaim", "--client", "alice",         "--namespace",
                                            "default", "--reason", "host went away"};
  const Finished unasked = RunAdmin(Live(server), command);
  CHECK(unasked.exit_code == 64);
  CHECK(unasked.err.find("--yes") != std::string::npos);
  CHECK(NowCalls(&bob, 1) == 3505);
  auto confirmed = command;
  confirmed.emplace_back("--yes");
  const Finished done = RunAdmin(Live(server), confirmed);
  CAPTURE(done.err);
  CHECK(done.exit_code == 0);
  CHECK(done.out == "client 'alice' of namespace 'default': 3501 tokens taken back\n");
  CHECK(NowCalls(&bob, 1) == 5);
  CHECK(NowCalls(&bob, 2) == 0);
  CHECK(RunAdmin(Live(server), confirmed).exit_code == 1);
  CHECK(server.server().LogHas(
      "reclaimed 1000 tokens of client alice of namespace default: host went away; more are left"));
  CHECK(server.server().LogHas("administrator 127.0.0.1:"));
  const std::vector<std::string> all = {"history", "--limit", "5000"};
  const auto ends = AdminRows(Live(server), all);
  CHECK(ends.size() == 3501);
  server.server().Kill9();
  CHECK(AdminRows(Offline(server), {"dump"}).size() == 1);
  CHECK(RunAdmin(Offline(server), {"verify"}).exit_code == 0);
  CHECK(AdminRows(Offline(server), all) == ends);

  // A history is dropped in blocks of 256 at most.
  server.server().options().arguments = {"--history-max", "300"};
  server.server().Start();
  RpcClient again(server.address());
  REQUIRE(PollUntil(kPatienceMs, [&] { return HistorySize(&again) < 300 + 256; }));
  auto left = AdminRows(Live(server), all);
  CHECK(left.size() >= 300);
  server.server().Kill9();
  CHECK(AdminRows(Offline(server), all) == left);
  CHECK(std::equal(left.begin(), left.end(), ends.begin()));
}

TEST_CASE("reclaim --flow and purge take a flow's tokens, purge only those of removed rules") {
  TestServer server({RuleJson(1, 100), RuleJson(2, 100)});
  RpcClient alice = server.Connect("alice");
  for (int i = 0; i < 3; ++i) Acquire(&alice, 1);
  const Finished reclaimed =
      RunAdmin(Live(server), {"reclaim", "--flow", "1", "--reason", "reset", "--yes"});
  CHECK(reclaimed.exit_code == 0);
  CHECK(reclaimed.out == "flow 1: 3 tokens taken back\n");
  Acquire(&alice, 1);
  const Finished refused = RunAdmin(Live(server), {"purge", "--flow", "1", "--yes"});
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("flow 1 has a rule in force") != std::string::npos);
  LoadRules(&alice, {RuleJson(2, 100)});
  const Finished unasked = RunAdmin(Live(server), {"purge", "--flow", "1"});
  CHECK(unasked.exit_code == 64);
  CHECK(unasked.err.find("flow 1 has 1 token with nowCalls 1 out") != std::string::npos);
  const Finished purged =
      RunAdmin(Live(server), {"purge", "--flow", "1", "--yes", "--reason", "old rule"});
  CHECK(purged.out == "flow 1: 1 token taken back\n");
  CHECK(AdminRows(Live(server), {"history", "--limit", "1"})[0].at("note") == "old rule");
  CHECK(server.server().LogHas("whose rule was removed: old rule"));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"purge", "--flow", "1"},
                                                  {"purge", "--flow", "1", "--yes"},
                                                  {"reclaim", "--flow", "1", "--reason", "x"},
                                                  {"flow", "1"}}) {
    const Finished unknown = RunAdmin(Live(server), command);
    CHECK(unknown.exit_code == 1);
    CHECK(unknown.err == "nowcalls-admin: flow 1 has neither a rule nor tokens\n");
  }
  const Finished nothing = RunAdmin(Live(server), {"reclaim", "--flow", "2", "--reason", "x"});
  CHECK(nothing.exit_code == 1);
  CHECK(nothing.err == "nowcalls-admin: flow 2 has no live token\n");
  CHECK(Reasons(AdminRows(Live(server), {"history", "--limit", "2"})) ==
        std::vector<std::string>{"rule_removed", "admin"});
}

// A terminal of which the test is the other end.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    char path[128];
    REQUIRE(ptsname_r(master_, path, sizeof(path)) == 0);
    path_ = path;
    // While one slave is open the master does not report an end between two users of it.
    slave_ = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(slave_ >= 0);
    REQUIRE(fcntl(master_, F_SETFL, O_NONBLOCK) == 0);
  }
  ~Terminal() {
    close(slave_);
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  const std::string& path() const { return path_; }
  // Waits until `text` has been shown.
  bool Shows(const std::string& text) {
    return PollUntil(kPatienceMs, [&] {
      char bytes[1024];
      const ssize_t size = read(master_, bytes, sizeof(bytes));
      if (size > 0) shown_.append(bytes, static_cast<size_t>(size));
      return shown_.find(text) != std::string::npos;
    });
  }
  void Type(const std::string& line) const {
    REQUIRE(write(master_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }

 private:
  int master_;
  int slave_ = -1;
  std::string path_;
  std::string shown_;
};

TEST_CASE("on a terminal the operator is shown how much it is, and decides") {
  TestServer server(RuleJson(1, 100));
  RpcClient alice = server.Connect("alice");
  for (int i = 0; i < 3; ++i) Acquire(&alice, 1, 2);
  for (const bool agrees : {false, true}) {
    Terminal terminal;
    Process admin({.argv = {ProductBinary("nowcalls-admin"), "reclaim", "--flow", "1", "--reason",
                            "x", "--server", server.address()},
                   .environment = {},
                   .stderr_path = terminal.path(),
                   .stdin_path = terminal.path()});
    REQUIRE(
        terminal.Shows("flow 1 has 3 tokens with nowCalls 6 out. Take back all of them? [y/N] "));
    CHECK(NowCalls(&alice, 1) == 6);
    terminal.Type(agrees ? "y\n" : "n\n");
    CHECK(admin.Wait() == (agrees ? 0 : 1));
    CHECK(NowCalls(&alice, 1) == (agrees ? 0 : 6));
  }
}

TEST_CASE("nobody can hide what administrators do behind noise in the log") {
  constexpr int64_t kActs = 5;
  TestServer server(RuleJson(1, 10));
  RpcClient alice = server.Connect("alice");
  std::vector<uint64_t> tokens;
  for (int64_t i = 0; i < kActs; ++i) tokens.push_back(Acquire(&alice, 1).token_id);
  RpcClient admin = server.Connect();
  // More lines about connections than are logged, in the second of each act.
  for (const uint64_t token : tokens) {
    for (int i = 0; i < 300; ++i) RpcClient(server.address()).SendRaw("GET / HTTP/1.0\r\n\r\n");
    CHECK(ResultOf(&admin, "reclaim", {token, "audited " + std::to_string(token)}).at(0) ==
          kStatusReleaseOk);
  }
  CHECK(server.server().LogHas("log lines about peers were suppressed"));
  for (const uint64_t token : tokens) {
    CHECK(server.server().LogHas("audited " + std::to_string(token)));
  }
}

TEST_CASE("a drained flow grants nothing across a restart and a reload, until it is let go") {
  TestServer server({RuleJson(1, 100), RuleJson(2, 100)});
  RpcClient alice = server.Connect("alice");
  const uint64_t token = Acquire(&alice, 1, 5).token_id;
  const Finished drained = RunAdmin(Live(server), {"drain", "--flow", "1", "--reason", "upgrade"});
  CHECK(drained.exit_code == 0);
  CHECK(server.server().LogHas("1 token with nowCalls 5 are out: upgrade"));
  CHECK(drained.out == "flow 1 grants nothing more, 1 token with nowCalls 5 out\n");
  const auto draining = [&](const Source& source) {
    return AdminRows(source, {"flow", "1"}).at(0).at("draining").get<bool>();
  };
  CHECK(Acquire(&alice, 1).refused_by == "draining");
  CHECK(Acquire(&alice, 2).status == kStatusOk);
  CHECK(draining(Live(server)));
  server.server().Kill9();
  CHECK(draining(Offline(server)));
  CHECK(RunAdmin(Offline(server), {"verify"}).exit_code == 0);
  // The rule file is loaded anew at each start.
  server.server().Start();
  RpcClient again = server.Connect("alice");
  CHECK(Acquire(&again, 1).refused_by == "draining");
  LoadRules(&again, {RuleJson(1, 50), RuleJson(2, 100)});
  CHECK(Acquire(&again, 1).refused_by == "draining");
  CHECK(Release(&again, token) == kStatusReleaseOk);
  CHECK(RunAdmin(Live(server), {"drain", "--flow", "1", "--off"}).out ==
        "flow 1 grants again, 0 tokens with nowCalls 0 out\n");
  CHECK(Acquire(&again, 1).level == 50);
  CHECK_FALSE(draining(Live(server)));
  CHECK(RunAdmin(Live(server), {"drain", "--flow", "9"}).exit_code == 1);
}

TEST_CASE("methods of administrators name what is wrong with their parameters") {
  TestServer server(RuleJson(1, 100));
  RpcClient client = server.Connect();
  const struct {
    std::string method;
    Json params;
    std::string named;
  } cases[] = {
      {"history", {0}, "limit"},
      {"history", {10, "x"}, "cursor"},
      {"reclaim_client", {"default"}, "client_id"},
      {"reclaim_client", {"default", "a", ""}, "reason"},
      {"reclaim_flow", {1, "why", 1001}, "limit"},
      {"reclaim_flow", {9, "why"}, "flow_id 9"},
      {"purge", {1}, "rule in force"},
      {"purge", Json::array(), "flow_id"},
      {"purge", {1, 10, 5}, "reason"},
      {"drain", {1}, "on"},
      {"drain", {1, true, ""}, "reason"},
  };
  for (const auto& bad : cases) {
    const Reply reply = ErrorOf(&client, bad.method, bad.params);
    CHECK(reply.error_code == kErrorBadParams);
    CHECK(reply.error_message.find(bad.method) == 0);
    CHECK(reply.error_message.find(bad.named) != std::string::npos);
  }
  CHECK(ResultOf(&client, "drain", {9, true}).at(0) == kStatusNoRuleExists);
  CHECK(ResultOf(&client, "reclaim_client", {"default", "nobody", "why"}) == Json({0, false}));
}

}  // namespace
}  // namespace nowcalls::testing
