// The vectors of data/golden/sessions, which sessions of other languages play: they are what this
// session does. NOWCALLS_WRITE_VECTORS=1 writes them anew.
#include <doctest/doctest.h>

#include <filesystem>
#include <utility>

#include "unit/client/vector_cases.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

// Keep by rule.

TEST_CASE("vector: under strategy 0 nobody keeps a token") {
  VectorScript script = Begin("strategy 0 is not kept");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0)));
  script.TickDue();
  script.Release("a");
  script.Answer("release", kReleased);
  Check(script);
}

TEST_CASE("vector: under strategy 1 a token is released at its resourceTimeout") {
  VectorScript script = Begin("strategy 1 releases at resourceTimeout");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(1)));
  script.TickDue();
  script.Answer("release", kReleased);
  script.Release("a");
  Check(script);
}

TEST_CASE("vector: a token that its rule ends is cancelled behind the release, if it strayed") {
  VectorScript script = Begin("strategy 1 of an acquire that strayed");
  script.Connect();
  script.Acquire("a");
  script.Disconnected();
  script.Connect();
  script.Answer("acquire", Granted(Terms(1)));
  script.TickDue();
  script.Answer("release", kReleased);
  script.Answer("cancel", Json::array({7}));
  Check(script);
}

TEST_CASE("vector: terms hold until others are told") {
  VectorScript script = Begin("a keep that tells no terms");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(2, 3000)));
  script.Disconnected();
  script.Connect(1);
  script.Answer("keep", Json::array({0, 4000}));
  script.TickDue();
  script.Answer("ping", Json::array({1'700'000'000'000}));
  script.TickDue();
  Check(script);
}

TEST_CASE("vector: under strategy 2 a token is kept, and keeps tell the rule anew") {
  VectorScript script = Begin("strategy 2 keeps, until the rule changes");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(2)));
  script.TickDue();
  script.At(1340);
  script.Answer("keep", KeptUnder(Terms(2)));
  script.TickDue();
  script.At(2700);
  script.Answer("keep", KeptUnder(Terms(0)));
  script.TickDue();
  Check(script);
}

TEST_CASE("vector: who says always or off is not asked what the rule says") {
  VectorScript script = Begin("keep always and off go before the rule");
  script.Connect();
  script.Acquire("always", {.keep = KeepMode::kAlways});
  script.Answer("acquire", Granted(Terms(0), 101));
  script.Acquire("off", {.keep = KeepMode::kOff});
  script.Answer("acquire", Granted(Terms(2), 102));
  script.TickDue();
  script.Answer("keep", KeptUnder(Terms(0)));
  script.TickDue();
  script.Answer("keep", KeptUnder(Terms(0)));
  script.TickDue();
  Check(script);
}

// Who the client is.

TEST_CASE("vector: a secret goes before hello, and an older server does not know it") {
  ClientOptions options = Shop();
  options.secret = "nc-0123456789abcdef";
  VectorScript script = Begin("identify goes before hello", options);
  script.Acquire("a");
  script.Connected();
  script.Answer("identify", Json::array({"checkout", "client", "secret", nullptr}));
  script.Answer("hello", Json::array({"1.0", 9, 2, 0}));
  script.Answer("acquire", Granted(Terms(0)));
  script.Disconnected();
  script.At(100);
  script.Connected();
  script.Refuse("identify", 2, "UNKNOWN_METHOD");
  script.Answer("hello", Json::array({"0.9", 9, 2, 1}));
  script.Release("a");
  script.Answer("release", kReleased);
  Check(script);
}

// Until when a token is valid.

TEST_CASE("vector: contact bounds validity, and pings renew it") {
  VectorScript script = Begin("pings renew contact, silence ends it");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0, 900)));
  script.TickDue();
  script.At(310);
  script.Answer("ping", Json::array({1'700'000'000'000}));
  script.TickDue();
  script.TickDue();
  script.TickDue();
  script.Release("a");
  Check(script);
}

TEST_CASE("vector: a grant with no time left ends by the client's own clock") {
  VectorScript script = Begin("a grant with no time left");
  script.Connect();
  // A grant with little left is asked for again, and taken with little left then.
  const std::pair<const char*, Json> grants[] = {
      {"of 0 ms", Granted(Terms(0), 101, 0)},
      {"of 1 ms", Granted(Terms(0), 102, 1)},
      {"offline at once", Granted(Terms(0, 0), 103)},
      {"offline after 1 ms", Granted(Terms(0, 1), 104)},
  };
  for (const auto& [permit, grant] : grants) {
    script.Acquire(permit);
    script.Answer("acquire", grant);
    script.Answer("acquire", grant);
    script.Tick();
  }
  Check(script);
}

TEST_CASE("vector: any answer is contact, as of when it was asked") {
  VectorScript script = Begin("any answer is contact");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0, 3000)));
  script.At(500);
  script.Acquire("b");
  script.At(700);
  script.Answer("acquire", Blocked("level"));
  script.TickDue();
  script.At(1600);
  script.Disconnected();
  script.At(2000);
  script.Connect(1);
  Check(script);
}

TEST_CASE("vector: what comes after the end brings no token back") {
  VectorScript script = Begin("a late keep does not bring a token back");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(2)));
  script.TickDue();
  script.At(3958);
  script.Answer("keep", KeptUnder(Terms(2)));
  script.Release("a");
  script.Answer("release", kReleased);
  Check(script);
}

TEST_CASE("vector: an answer that comes late brings no token back") {
  VectorScript script = Begin("a late answer does not bring a token back");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0, 900)));
  script.At(250);
  script.Acquire("b");
  script.At(890);
  script.Answer("acquire", Blocked("level"));
  script.Release("a");
  script.Answer("release", kReleased);
  Check(script);
}

TEST_CASE("vector: a token ends by the own clock while there is no connection") {
  VectorScript script = Begin("a token ends while there is no connection");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(2, 3000)));
  script.At(200);
  script.Disconnected();
  script.At(2968);
  script.Tick();
  script.Release("a", CallOutcome::kFailed);
  script.At(3100);
  script.Connect(1);
  script.Answer("release", kReleased);
  Check(script);
}

TEST_CASE("vector: a grant that comes late is asked again") {
  VectorScript script = Begin("a late grant is asked again");
  script.Connect();
  script.Acquire("a", {.wait = 10s});
  script.At(2500);
  script.Answer("acquire", Granted(Terms(0)));
  script.At(2510);
  script.Answer("acquire", Granted(Terms(0), 101, 3990));
  script.TickDue();
  Check(script);
}

TEST_CASE("vector: the server takes a token, and its release needs no request") {
  VectorScript script = Begin("a token that the server took is not released");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(2)));
  script.At(100);
  script.Lost(101, "admin");
  script.Release("a");
  Check(script);
}

// Who the client is.

TEST_CASE("vector: a process names its instance") {
  ClientOptions options = Shop();
  options.exclusive = true;
  VectorScript script = Begin("hello names the instance", options);
  script.Connect();
  Check(script);
}

TEST_CASE("vector: who rejoins names no instance") {
  VectorScript script("rejoin names no instance", Shop(), 0);
  script.Connect(2);
  Check(script);
}

TEST_CASE("vector: an older server is greeted without options") {
  VectorScript script = Begin("an older server");
  script.Connected();
  script.Refuse("hello", 3, "BAD_PARAMS");
  script.Answer("hello", Json::array({"0.9", 9, 2, 0}));
  script.Acquire("a");
  script.Answer("acquire", Json::array({0, 101, 13, 1, 2, 4000, nullptr}));
  script.TickDue();
  script.Answer("keep", Json::array({0, 4000}));
  script.Release("a", CallOutcome::kFailed);
  script.Answer("release", kReleased);
  Check(script);
}

// Outcome.

TEST_CASE("vector: a release tells how the call ended") {
  VectorScript script = Begin("a release tells the outcome");
  script.Connect();
  const std::pair<const char*, CallOutcome> calls[] = {
      {"good", CallOutcome::kOk}, {"bad", CallOutcome::kFailed}, {"slow", CallOutcome::kTimeout}};
  uint64_t token = 101;
  for (const auto& [call, outcome] : calls) {
    script.Acquire(call);
    script.Answer("acquire", Granted(Terms(0), token++));
    script.Release(call, outcome);
    script.Answer("release", kReleased);
  }
  Check(script);
}

TEST_CASE("vector: a release is asked again until it is answered") {
  VectorScript script = Begin("a release is asked again");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0)));
  script.Release("a", CallOutcome::kFailed);
  script.At(100);
  script.Disconnected();
  script.At(200);
  script.Connect(0);
  script.Answer("release", Json::array({7}));
  Check(script);
}

TEST_CASE("vector: a release goes on when its caller waits no longer") {
  VectorScript script = Begin("a release outlives its caller");
  script.Connect();
  for (const char* call : {"a", "b"}) {
    script.Acquire(call);
    script.Answer("acquire", Granted(Terms(0), call[0] == 'a' ? 101 : 102));
  }
  script.Disconnected();
  script.DialDue();
  script.Release("a");
  script.Connected();
  script.Elapse(10);
  script.Answer("hello", Json::array({"1.0", 9, 2, 2}));
  script.Release("b");
  script.Disconnected();
  script.DialDue();
  script.TickDue();
  script.TickDue();
  script.Connect(2);
  script.Answer("release", kReleased);
  script.Answer("release", kReleased);
  Check(script);
}

// Fallback.

TEST_CASE("vector: by rule, local limits count what the process holds") {
  VectorScript script = Begin("fallback by rule counts what is held", Shop(Fallback::kByRule));
  script.Connect();
  script.Acquire("held");
  script.Answer("rules_list", Rules(1001, 4, true));
  script.Answer("acquire", Granted(Terms(2)));
  script.At(100);
  script.Disconnected();
  script.DialFailed();
  script.Acquire("local");
  script.Acquire("refused");
  script.Release("held");
  script.Acquire("again");
  script.Release("local");
  Check(script);
}

TEST_CASE("vector: by rule, calls pass if the rule says so or was never seen") {
  VectorScript script = Begin("fallback by rule lets pass", Shop(Fallback::kByRule));
  script.Connect();
  script.Acquire("first");
  script.Answer("rules_list", Rules(1001, 1, false));
  script.Answer("acquire", Blocked("level"));
  script.At(100);
  script.Disconnected();
  script.DialFailed();
  script.Acquire("a");
  script.Acquire("b");
  script.Acquire("unseen", {}, FlowId(1002));
  script.Request("rate");
  Check(script);
}

TEST_CASE("vector: an acquire that may wait falls back when its wait is over") {
  VectorScript script =
      Begin("a waiting acquire falls back at the end of its wait", Shop(Fallback::kByRule));
  script.Connect();
  script.Acquire("in line", {.wait = 500ms});
  script.Answer("rules_list", Rules(1001, 1, false));
  script.At(100);
  script.Disconnected();
  script.DialFailed();
  script.Acquire("another", {.wait = 300ms});
  script.At(300);
  script.DialFailed();
  script.At(450);
  script.DialFailed();
  script.At(500);
  script.DialFailed();
  Check(script);
}

TEST_CASE("vector: a value that was not seen before has the count of its rule") {
  VectorScript script = Begin("fallback of a value that is new", Shop(Fallback::kByRule));
  script.Connect();
  script.Acquire("seen", {.param = "old"}, FlowId(4001));
  script.Answer("rules_list", Rules(4001, 2, true, "value"));
  script.Answer("acquire", Blocked("param"));
  script.Disconnected();
  script.DialFailed();
  script.Acquire("a", {.param = "new"}, FlowId(4001));
  script.Acquire("b", {.param = "new"}, FlowId(4001));
  script.Acquire("c", {.param = "newer"}, FlowId(4001));
  script.Acquire("no rule without a value", {}, FlowId(4001));
  Check(script);
}

TEST_CASE("vector: local levels, of tokens and of the calls of a window") {
  ClientOptions options = Shop(Fallback::kLocal);
  options.local_levels = {{FlowId(1001), 2}, {FlowId(5001), 2}};
  VectorScript script = Begin("fallback to local levels", options);
  script.DialFailed();
  script.Acquire("a", {.count = 2});
  script.Acquire("b");
  for (const char* call : {"r1", "r2", "r3"}) script.Request(call);
  script.At(1000);
  script.Request("r4");
  script.AcquireAll("group", {{FlowId(1001), 1, {}}, {FlowId(5001), 1, {}, true}});
  script.Release("a");
  script.AcquireAll("again", {{FlowId(1001), 1, {}}, {FlowId(5001), 1, {}, true}});
  Check(script);
}

TEST_CASE("vector: without a fallback calls wait for a server, until their time is over") {
  VectorScript script = Begin("no fallback");
  script.DialFailed();
  script.Acquire("a", {.timeout = 300ms});
  script.At(300);
  script.Tick();
  Check(script);
}

TEST_CASE("vector: a server that is full is none") {
  VectorScript script = Begin("TOO_MANY_REQUEST falls back", Shop(Fallback::kPass));
  script.Connect();
  script.Acquire("held");
  script.Answer("acquire", Granted(Terms(0)));
  script.Acquire("a");
  script.Answer("acquire", Json::array({-2, 0, 0, 0, 0, 0, "token_limit"}));
  script.Request("r");
  script.Answer("request", Json::array({-2, 0, 0, "namespace_qps"}));
  script.Acquire("overloaded");
  script.Refuse("acquire", 5, "OVERLOADED");
  script.Acquire("unruled");
  script.Answer("acquire", Json::array({3, 0, 0, 0, 0, 0, nullptr}));
  Check(script);
}

// Calls a second.

TEST_CASE("vector: SHOULD_WAIT is slept, unless it cannot be") {
  VectorScript script = Begin("SHOULD_WAIT is slept");
  script.Connect();
  script.Request("slept", {.prioritized = true});
  script.Answer("request", Json::array({2, 0, 300, nullptr}));
  script.Request("told", {.sleep = false});
  script.Answer("request", Json::array({2, 0, 300, nullptr}));
  script.Request("too long", {.timeout = 200ms});
  script.Answer("request", Json::array({2, 0, 300, nullptr}));
  script.TickDue();
  script.RequestParam("closed", {"key", int64_t{7}});
  script.Answer("request_param", Json::array({2, 0, 400, nullptr}));
  script.At(400);
  script.Close();
  Check(script);
}

TEST_CASE("vector: a group has tokens and rates") {
  VectorScript script = Begin("a group of tokens and rates");
  script.Connect();
  script.AcquireAll("g", {{FlowId(4001), 1, "key"}, {FlowId(4002), 1, "key", true}});
  script.Answer("acquire_all",
                Json::array({0, Json::array({Json::array({101, 13, 4000, Terms(2)}), {0, 0, 50}}),
                             nullptr, 0, 0, 0}));
  script.TickDue();
  script.Release("g/0");
  script.AcquireAll("rates", {{FlowId(4002), 1, "key", true}});
  script.At(200);
  script.Disconnected();
  Check(script);
}

// Asking again.

TEST_CASE("vector: what has no answer is asked again, and given up with a cancel") {
  VectorScript script = Begin("asked again, and cancelled");
  script.Connect();
  script.Acquire("held");
  script.Answer("acquire", Granted(Terms(0)));
  script.Acquire("waits", {.wait = 2s});
  script.Acquire("over", {.timeout = 600ms});
  script.At(500);
  script.Disconnected();
  script.Connect(1);
  script.At(600);
  script.Tick();
  script.Answer("cancel", Json::array({6}));
  script.At(700);
  script.Answer("acquire", Granted(Terms(0), 102));
  script.Release("waits");
  script.Answer("release", kReleased);
  script.Answer("cancel", Json::array({7}));
  Check(script);
}

TEST_CASE("vector: a hello without tokens loses those of before") {
  VectorScript script = Begin("a hello without tokens loses them");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0)));
  script.At(100);
  script.Disconnected();
  script.At(200);
  script.Connect(0);
  script.Release("a");
  Check(script);
}

TEST_CASE("vector: a hello with fewer tokens has those asked for that may be kept") {
  VectorScript script = Begin("a hello with fewer tokens asks for each");
  script.Connect();
  const std::pair<const char*, KeepMode> calls[] = {{"by rule", KeepMode::kByRule},
                                                    {"off", KeepMode::kOff}};
  uint64_t token = 101;
  for (const auto& [call, keep] : calls) {
    script.Acquire(call, {.keep = keep});
    script.Answer("acquire", Granted(Terms(0), token++));
  }
  script.At(100);
  script.Disconnected();
  script.At(200);
  script.Connect(1);
  script.Answer("keep", Json::array({7, 0}));
  Check(script);
}

TEST_CASE("each vector is one that a test writes") {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(VectorDirectory())) {
    files += entry.path().extension() == ".json" ? 1 : 0;
  }
  CHECK(files == 72);
}

}  // namespace
}  // namespace nowcalls::client
