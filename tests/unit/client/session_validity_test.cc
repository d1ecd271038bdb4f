// Until when a session's tokens are surely its own: what their rules say, and what its clock says.
#include "unit/client/session_script.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

// Of the 4 s that the script's server grants: 1 % and 2 ms less.
constexpr int64_t kSureMs = 3958;

Json KeepAnswer(const Json& terms) { return Json::array({0, 4000, terms}); }

TEST_CASE("under strategy 0 a token is not kept, and its permit is lost at the end of its hold") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(0)));
  CHECK(script.session.Wakeup() == kSureMs);
  script.Tick(kSureMs - 1);
  CHECK(script.lost.empty());
  CHECK_FALSE(script.held[0]->IsLost(kSureMs - 1));
  CHECK(script.held[0]->IsLost(kSureMs));
  script.Tick(kSureMs);
  CHECK(script.lost == std::vector<std::string>{"resource_timeout"});
  CHECK(script.TakeRequest().is_null());
  CHECK(script.lines.back() ==
        "lost token 1 of flow 7: its call took longer than the 4000 ms that its rule holds a token "
        "(resourceTimeoutStrategy 0); set resourceTimeoutStrategy 2 in the rule, or ask to keep it "
        "always");
}

TEST_CASE("under strategy 1 a token is released just before resourceTimeout, as timed out") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(1)));
  CHECK(script.session.Wakeup() == 1950);
  script.Tick(1950);
  CHECK(script.Expect("release")[2] == Json::array({1, Json{{"outcome", "timeout"}}}));
  CHECK(script.lost == std::vector<std::string>{"resource_timeout"});
  script.Release(script.held[0]);
  CHECK(script.TakeRequest().is_null());
  REQUIRE(script.released.size() == 1);
  CHECK(script.released[0].lost);
}

TEST_CASE("under strategy 2 a token is kept at a third of its hold, until a keep tells otherwise") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(2)));
  script.Tick(1334);
  const Json keep = script.Expect("keep");
  SUBCASE("still 2") {
    script.Answer(keep, KeepAnswer(Script::Terms(2)));
    CHECK(script.session.Wakeup() == 2 * 1334);
  }
  SUBCASE("now 0: it is not kept any more") {
    script.Answer(keep, KeepAnswer(Script::Terms(0)));
    CHECK(script.session.Wakeup() == 1334 + kSureMs);
  }
  SUBCASE("now 1: its resourceTimeout counts from the grant") {
    script.Answer(keep, KeepAnswer(Script::Terms(1)));
    CHECK(script.session.Wakeup() == 1950);
  }
}

TEST_CASE("who asks to keep a token always, or never, is not asked what its rule says") {
  Script script;
  script.Connect();
  int64_t due_ms = kSureMs;
  AcquireOptions options;
  SUBCASE("always") {
    options.keep = KeepMode::kAlways;
    due_ms = 1334;
  }
  SUBCASE("never") { options.keep = KeepMode::kOff; }
  script.Acquire(options);
  const int strategy = options.keep == KeepMode::kOff ? 2 : 0;
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(strategy)));
  CHECK(script.session.Wakeup() == due_ms);
}

TEST_CASE("a token of an older server, which tells no terms, is kept") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  CHECK(script.session.Wakeup() == 1334);
}

TEST_CASE("an older server is told no outcome of a release, and no instance") {
  ClientOptions options = OptionsWith(Fallback::kFail);
  options.exclusive = true;
  Script script(options, /*instance=*/5);
  script.session.Connected(0);
  const Json hello = script.Expect("hello");
  CHECK(hello[2][3] == Json{{"exclusive", true}, {"instance", 5}, {"lost", true}, {"terms", true}});
  script.Refuse(hello, 3, "BAD_PARAMS");
  const Json again = script.Expect("hello");
  CHECK(again[2][3] == Json{{"exclusive", true}});
  script.Answer(again, Json::array({"0.9", 9, 1, 0}));
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  script.Release(script.held[0], CallOutcome::kFailed);
  CHECK(script.Expect("release")[2] == Json::array({1}));
}

TEST_CASE("a release tells how the call ended") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  Json sent = Json::array({1});
  CallOutcome outcome = CallOutcome::kOk;
  SUBCASE("ok, which needs no word") {}
  SUBCASE("failed") {
    outcome = CallOutcome::kFailed;
    sent.push_back(Json{{"outcome", "failed"}});
  }
  SUBCASE("timeout") {
    outcome = CallOutcome::kTimeout;
    sent.push_back(Json{{"outcome", "timeout"}});
  }
  script.Release(script.held[0], outcome);
  CHECK(script.Expect("release")[2] == sent);
}

TEST_CASE("a holder that is cut off loses its token by its own clock") {
  ClientOptions patient = OptionsWith(Fallback::kFail);
  patient.timeout = 10s;
  Script script(patient);
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(2, 3000)));
  CHECK(script.session.Wakeup() == 1000);
  script.Tick(1000);
  CHECK(script.Expect("ping")[1] == "ping");
  script.Tick(1334);
  script.Expect("keep");
  constexpr int64_t kAbsenceMs = 3000 - 30 - 2;
  CHECK(script.held[0]->validity.until_ms() == kAbsenceMs);
  script.Tick(kAbsenceMs - 1);
  CHECK(script.lost.empty());
  SUBCASE("while the connection seems to stand") {}
  SUBCASE("while there is none") { script.Break(); }
  script.Tick(kAbsenceMs);
  CHECK(script.lost == std::vector<std::string>{"client_offline"});
  CHECK(script.session.stats().held == 0);
}

TEST_CASE("any answer shows that the server knows the session, as of when it was asked") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(0, 3000)));
  const auto& validity = script.held[0]->validity;
  script.Tick(1000);
  const Json ping = script.Expect("ping");
  script.now = 1200;
  script.Answer(ping, 123);
  CHECK(validity.contact_end_ms() == 1000 + 2968);
  CHECK(script.session.Wakeup() == 2000);
  script.now = 1500;
  script.Acquire();
  const Json acquire = script.Expect("acquire");
  script.now = 1600;
  script.Answer(acquire, Script::Blocked("level"));
  CHECK(validity.contact_end_ms() == 1500 + 2968);
  CHECK(script.session.Wakeup() == 2500);
  script.Break();
  script.now = 2000;
  script.Connect(1);
  CHECK(validity.contact_end_ms() == 2000 + 2968);
}

TEST_CASE("a token that is lost by the own clock stays lost, whatever comes late") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(2)));
  script.Tick(1334);
  const Json keep = script.Expect("keep");
  script.now = kSureMs;  // The process was stopped: nobody has ticked.
  script.Answer(keep, KeepAnswer(Script::Terms(2)));
  CHECK(script.lost == std::vector<std::string>{"resource_timeout"});
  CHECK(script.held[0]->lost);
  script.Tick(100'000 - 1);
  while (!script.TakeRequest().is_null()) {
  }
  CHECK(script.lost.size() == 1);
}

TEST_CASE("who was told that its permit is lost is not told otherwise by a keep that was faster") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(2)));
  script.Tick(1334);
  const Json keep = script.Expect("keep");
  CHECK(script.held[0]->IsLost(kSureMs));  // Another thread, whose clock reads a moment later.
  script.now = kSureMs - 1;
  script.Answer(keep, KeepAnswer(Script::Terms(2)));
  CHECK(script.held[0]->IsLost(kSureMs));
  script.Tick(1334 + 1334);
  CHECK(script.lost == std::vector<std::string>{"resource_timeout"});
  CHECK(script.TakeRequest().is_null());
}

TEST_CASE("a token that is lost by the own clock is released all the same, and told as lost") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(0)));
  SUBCASE("after the session has noticed") { script.Tick(kSureMs); }
  SUBCASE("before") { script.now = kSureMs; }
  script.Release(script.held[0]);
  CHECK(script.lost.size() == 1);
  const Json release = script.Expect("release");
  script.Answer(release, Json::array({6}));
  REQUIRE(script.released.size() == 1);
  CHECK(script.released[0].ok());
  CHECK(script.released[0].lost);
  CHECK(script.session.stats().lost == 1);
}

TEST_CASE("a token that is lost by the own clock is not kept by a call") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Expect("acquire");
  script.Break();
  script.Connect();
  script.Answer(script.Expect("acquire"), Script::GrantedUnder(Script::Terms(0)));
  script.now = kSureMs;
  std::vector<Outcome> kept;
  script.session.Keep(
      script.held[0], [&](const nowcalls::Kept& told) { kept.push_back(told.outcome); },
      script.now);
  script.Tell();
  CHECK(kept == std::vector<Outcome>{Outcome::kRefused});
  CHECK(script.TakeRequest().is_null());
  script.Release(script.held[0]);
  script.Expect("release");
  script.Expect("cancel");  // The attempt on the broken connection may still come.
}

TEST_CASE("a grant that comes late is asked again, so that its holder has most of its hold") {
  Script script;
  script.Connect();
  script.Acquire({.wait = 10s});
  const Json first = script.Expect("acquire");
  SUBCASE("in time") {
    script.now = kSureMs / 2;
    script.Answer(first, Script::GrantedUnder(Script::Terms(2)));
    CHECK(script.held.size() == 1);
    return;
  }
  int64_t offline_ms = 60'000;
  SUBCASE("late for its hold") { script.now = kSureMs / 2 + 1; }
  SUBCASE("late for clientOfflineTime") {
    offline_ms = 3000;
    script.now = 1500;
  }
  const int64_t asked_ms = script.now;
  script.Answer(first, Script::GrantedUnder(Script::Terms(2, offline_ms)));
  CHECK(script.answers.empty());
  const Json again = script.Expect("acquire");
  CHECK(Script::RequestId(again) == Script::RequestId(first));
  script.now += 100;
  script.Answer(again, Script::GrantedUnder(Script::Terms(2, offline_ms), 1, 3000));
  REQUIRE(script.held.size() == 1);
  CHECK(script.held[0]->grant.hold == 3s);
  CHECK(script.held[0]->validity.hold_end_ms() == asked_ms + 2968);
}

TEST_CASE("a late grant whose second answer is none is cancelled: its token is there") {
  Script script;
  script.Connect();
  script.Acquire({.wait = 10s});
  const Json first = script.Expect("acquire");
  script.now = 2500;
  script.Answer(first, Script::GrantedUnder(Script::Terms(0)));
  script.Refuse(script.Expect("acquire"), 5, "OVERLOADED");
  REQUIRE(script.answers.size() == 1);
  CHECK(script.answers[0].outcome == Outcome::kUnavailable);
  CHECK(script.Expect("cancel")[2][0] == Script::RequestId(first));
}

TEST_CASE("a late grant is asked again once: what is left by then is told") {
  Script script;
  script.Connect();
  script.Acquire({.wait = 100s});
  const Json first = script.Expect("acquire");
  script.now = 50'000;
  CHECK(script.session.Tick(script.now).ok());
  script.Answer(first, Script::GrantedUnder(Script::Terms(0)));
  while (true) {
    const Json request = script.TakeRequest();
    REQUIRE_FALSE(request.is_null());
    if (request[1] != "acquire") continue;
    script.now = 53'000;
    script.Answer(request, Script::GrantedUnder(Script::Terms(0)));
    break;
  }
  REQUIRE(script.held.size() == 1);
  CHECK(script.TakeRequest().is_null());
}

}  // namespace
}  // namespace nowcalls::client
