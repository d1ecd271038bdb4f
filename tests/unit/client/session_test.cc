// The session's calls and connections, at times that the test says.
#include "unit/client/session_script.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

TEST_CASE("nothing is asked before hello is answered") {
  Script script;
  script.Acquire();
  script.session.Connected(0);
  const Json hello = script.Expect("hello");
  CHECK(hello[2] == Json::array({1, "default", "me", Json{{"lost", true}, {"terms", true}}}));
  CHECK(script.TakeRequest().is_null());
  script.Answer(hello, Json::array({"1.0", 9, 1, 0}));
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  REQUIRE(script.held.size() == 1);
  CHECK(script.held[0]->grant.token == TokenId(1));
  CHECK(script.held[0]->grant.hold == 4s);
}

TEST_CASE("a server that does not know an option of hello is greeted without options") {
  Script script;
  script.session.Connected(0);
  script.Refuse(script.Expect("hello"), 3, "BAD_PARAMS");
  const Json again = script.Expect("hello");
  CHECK(again[2] == Json::array({1, "default", "me"}));
  script.Answer(again, Json::array({"0.9", 9, 1, 0}));
  CHECK(script.session.ready());
}

TEST_CASE("an acquire without an answer is asked again under its request id, with what is left") {
  Script script;
  script.Connect();
  script.Acquire({.wait = 500ms});
  const Json first = script.Expect("acquire");
  CHECK(first[2][2].at("wait_ms") == 500);
  script.now = 200;
  script.Break();
  CHECK(script.answers.empty());
  script.Connect();
  const Json again = script.Expect("acquire");
  CHECK(Script::RequestId(again) == Script::RequestId(first));
  CHECK(again[2][2].at("wait_ms") == 300);
  script.Answer(again, Script::Granted(1));
  CHECK(script.answers.size() == 1);
  CHECK(script.session.stats().asked_again == 1);
}

TEST_CASE("an acquire whose time is over is unknown if it was sent, and is cancelled") {
  Script script;
  script.Connect();
  script.Acquire({.timeout = 100ms});
  const Json acquire = script.Expect("acquire");
  script.Tick(99);
  CHECK(script.answers.empty());
  script.Tick(100);
  REQUIRE(script.answers.size() == 1);
  CHECK(script.answers[0].outcome == Outcome::kUnknown);
  const Json cancel = script.Expect("cancel");
  CHECK(cancel[2][0] == Script::RequestId(acquire));
  SUBCASE("a late grant is the cancel's") {
    script.Answer(acquire, Script::Granted(1));
    CHECK(script.held.empty());
  }
  SUBCASE("the cancel is asked until it is answered") {
    script.Break();
    CHECK_FALSE(script.session.settled());
    script.Connect();
    const Json again = script.Expect("cancel");
    CHECK(script.TakeRequest().is_null());
    script.Answer(again, Json::array({6}));
    CHECK(script.session.settled());
  }
}

TEST_CASE("an acquire that was never sent is unavailable, and needs no cancel") {
  Script script;
  script.Acquire({.timeout = 100ms});
  script.session.DialFailed("refused", 10);
  script.Tick(100);
  REQUIRE(script.answers.size() == 1);
  CHECK(script.answers[0].outcome == Outcome::kUnavailable);
  CHECK(script.answers[0].message == "not carried out: a:1: refused");
  script.Connect();
  CHECK(script.TakeRequest().is_null());
}

TEST_CASE("a server that ends has not carried the acquire out: the next connection asks again") {
  Script script;
  script.Connect();
  script.Acquire({.wait = 1s});
  script.Answer(script.Expect("acquire"), Json::array({5, 0, 0, 0, 0, 0, nullptr}));
  CHECK(script.answers.empty());
  script.Break();
  script.Connect();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  CHECK(script.held.size() == 1);
}

TEST_CASE("a message of which a part came too late is asked again on another connection") {
  Script script;
  script.Connect();
  script.Acquire({.timeout = 20s});
  const Json acquire = script.Expect("acquire");
  const Json refusal =
      Json::array({1, acquire[0], Json::array({1, "MALFORMED", "incomplete"}), nullptr});
  const Status status = script.session.Received(testing::ToMessagePack(refusal), 11'000);
  CHECK(status.code() == StatusCode::kUnavailable);
  script.Break();
  CHECK(script.answers.empty());
  script.Connect();
  CHECK(Script::RequestId(script.Expect("acquire")) == Script::RequestId(acquire));
}

TEST_CASE("a session sleeps until its deadlines while its owner dials") {
  Script script;
  script.Acquire({.timeout = 700ms});
  CHECK(script.session.Wakeup() == 0);
  script.session.dialing().Begin();
  CHECK(script.session.Wakeup() == 700);
  script.session.DialFailed("refused", 10);
  CHECK(script.session.Wakeup() == script.session.dialing().at_ms());
}

TEST_CASE("a rate request is not asked again: it may have been counted") {
  Script script;
  std::vector<Passed> told;
  auto call = std::make_shared<RateCall>();
  call->flow = kSeven;
  call->tell = [&](Passed passed) { told.push_back(std::move(passed)); };
  script.Connect();
  script.session.Request(call, 0);
  script.Expect("request");
  script.Break();
  REQUIRE(told.size() == 1);
  CHECK(told[0].outcome == Outcome::kUnknown);
  script.Connect();
  CHECK(script.TakeRequest().is_null());
}

TEST_CASE("a server that is silent is asked for a sign of life, and then left") {
  Script script;
  script.Connect();
  script.Tick(9'999);
  CHECK(script.TakeRequest().is_null());
  script.Tick(10'000);
  script.Expect("ping");
  CHECK(script.session.Tick(10'999).ok());
  CHECK(script.session.Tick(11'000).message() == "the server is silent");
}

TEST_CASE("dialling pauses longer from row to row, and begins anew after a useful connection") {
  ClientOptions options = OptionsWith(Fallback::kFail);
  options.addresses = {"a:1", "b:2"};
  Script script(options);
  CHECK(script.session.dialing().address() == "a:1");
  script.session.DialFailed("refused", 0);
  CHECK(script.session.dialing().address() == "b:2");
  CHECK(script.session.dialing().at_ms() == 0);  // Within a row there is no pause.
  int64_t longest = 0;
  for (int i = 0; i < 100; ++i) {
    script.session.DialFailed("refused", 0);
    longest = std::max(longest, script.session.dialing().at_ms());
    CHECK(script.session.dialing().at_ms() <= kPauseMsMax);
  }
  CHECK(longest > kPauseMsMax / 2);
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  script.Break();
  CHECK(script.session.dialing().at_ms() <= kPauseMsMin);
}

TEST_CASE("bytes that are not nowcalls end the connection") {
  Script script;
  script.session.Connected(0);
  CHECK(script.session.Received("HTTP/1.1 400 Bad Request\r\n", 0)
            .message()
            .starts_with("the peer does not speak nowcalls: "));
}

TEST_CASE("a hello that is refused for the client's own fault fails the calls that wait") {
  Script script;
  script.Acquire();
  script.session.Connected(0);
  const Json hello = script.Expect("hello");
  const Json refusal =
      Json::array({1, hello[0], Json::array({6, "UNSUPPORTED", "protocol"}), nullptr});
  CHECK_FALSE(script.session.Received(testing::ToMessagePack(refusal), 0).ok());
  script.Break();
  REQUIRE(script.answers.size() == 1);
  CHECK(script.answers[0].outcome == Outcome::kBadRequest);
}

TEST_CASE("the fallback counts the values of a request all, or none") {
  ClientOptions options = OptionsWith(Fallback::kLocal);
  options.local_levels = {{kSeven, 1}};
  Script script(options);
  script.session.DialFailed("refused", 0);
  const auto outcome_of = [&](std::vector<Value> values) {
    auto call = std::make_shared<RateCall>();
    call->flow = kSeven;
    call->by_value = true;
    call->values = std::move(values);
    Outcome outcome = Outcome::kUnknown;
    call->tell = [&](const Passed& passed) { outcome = passed.outcome; };
    script.session.Request(call, 0);
    script.Tell();
    return outcome;
  };
  CHECK(outcome_of({"b"}) == Outcome::kOk);
  CHECK(outcome_of({"a", "b"}) == Outcome::kRefused);
  CHECK(outcome_of({"a"}) == Outcome::kOk);
  CHECK(outcome_of({"a"}) == Outcome::kRefused);
}

TEST_CASE("the fallback by rule knows the rule as last seen") {
  Script script(OptionsWith(Fallback::kByRule));
  script.Connect();  // Two sessions are online.
  script.Acquire();
  const Json rules = script.Expect("rules_list");
  CHECK(rules[2] == Json::array({nullptr, 2, 6}));
  const auto rule = [](bool local, bool global) {
    return Json{{"count", 5},
                {"clusterConfig", Json{{"flowId", 7},
                                       {"fallbackToLocalWhenFail", local},
                                       {"thresholdType", global ? 1 : 0}}}};
  };
  const auto admitted_of_ten = [&](const Json& rows) {
    script.Answer(rules, Json::array({rows, nullptr}));
    script.Answer(script.Expect("acquire"), Script::Blocked("level"));
    script.Break();
    script.session.DialFailed("refused", 0);
    script.answers.clear();
    for (int i = 0; i < 10; ++i) script.Acquire();
    int admitted = 0;
    for (const nowcalls::Answer& answer : script.answers) {
      CHECK(answer.local);
      admitted += answer.ok() ? 1 : 0;
    }
    return admitted;
  };
  SUBCASE("a share of a global level") {
    CHECK(admitted_of_ten(Json::array({rule(true, true)})) == 2);
    CHECK(script.answers.back().refused_by == RefusedBy::kLevel);
    CHECK(script.answers.back().level == 2);
    const size_t answered = script.answers.size();
    for (const HeldPtr& token : script.held) {
      if (token->grant.local) script.Release(token);
    }
    CHECK(script.Acquire()->answer.ok());
    CHECK(script.answers.size() == answered + 1);
    CHECK(script.session.settled());  // No local token is released at a server.
  }
  SUBCASE("the whole of a level for each session") {
    CHECK(admitted_of_ten(Json::array({rule(true, false)})) == 5);
  }
  SUBCASE("all if the rule says so") {
    CHECK(admitted_of_ten(Json::array({rule(false, true)})) == 10);
  }
  SUBCASE("all without a rule") { CHECK(admitted_of_ten(Json::array()) == 10); }
}

TEST_CASE("the share of a value is that of its item") {
  const Result<FlowRules> rules = ReadFlowRules(
      testing::ToMessagePack(Json::array(
          {Json::array(
               {Json{{"kind", "value"},
                     {"count", 4},
                     {"paramFlowItemList", Json::array({Json{{"object", "vip"}, {"count", 40}},
                                                        Json{{"object", "9"}, {"count", 0}}})},
                     {"clusterConfig", Json{{"flowId", 7}, {"thresholdType", 1}}}}}),
           nullptr})),
      7);
  REQUIRE(rules.ok());
  CHECK_FALSE(rules->of_flow.has_value());
  const std::optional<RuleView>& view = rules->by_value;
  REQUIRE(view.has_value());
  CHECK(view->Share("vip", 2) == 20);
  CHECK(view->Share("other", 2) == 2);
  CHECK(view->Share(int64_t{9}, 2) == 0);
  CHECK(view->Share("other", 100) == 1);
}

TEST_CASE("a client knows both rules of a flow id, and a call's value chooses") {
  const auto row = [](const char* kind, double count, Json more) {
    more.update(Json{{"count", count}, {"clusterConfig", Json{{"flowId", 7}}}});
    if (kind != nullptr) more["kind"] = kind;
    return more;
  };
  const auto views = [&](const Json& rows) {
    RuleViews seen;
    const auto rules = ReadFlowRules(testing::ToMessagePack(Json::array({rows, nullptr})), 7);
    REQUIRE(rules.ok());
    seen.Learn(7, *rules, 0);
    return seen;
  };
  const RuleViews both =
      views(Json::array({row("flow", 4, Json::object()), row("value", 2, {{"paramIdx", 0}})}));
  CHECK(both.Find(FlowId{7}, {})->count == 4);
  CHECK(both.Find(FlowId{7}, "x")->count == 2);
  CHECK(both.Find(FlowId{8}, {}) == nullptr);
  // An older server does not say the kind.
  const RuleViews older =
      views(Json::array({row(nullptr, 4, Json::object()), row(nullptr, 2, {{"paramIndex", 0}})}));
  CHECK(older.Find(FlowId{7}, "x")->count == 2);
  CHECK(views(Json::array({row("value", 2, Json::object())})).Find(FlowId{7}, {}) == nullptr);
}

TEST_CASE("the share of a window is counted in the rule's own interval, and rounded once") {
  const auto share = [](Json rule, Json config, uint64_t sessions) {
    config["flowId"] = 7;
    rule["clusterConfig"] = config;
    const Result<FlowRules> rules =
        ReadFlowRules(testing::ToMessagePack(Json::array({Json::array({rule}), nullptr})), 7);
    REQUIRE(rules.ok());
    REQUIRE(rules->of_flow.has_value());
    return rules->of_flow->WindowShare(Value(), sessions);
  };
  const Json minute = {{"thresholdType", 1}, {"windowIntervalMs", 60'000}};
  CHECK(share({{"count", 1.66667}}, minute, 1) == 100);
  Json per_window = minute;
  per_window["countPerWindow"] = true;
  CHECK(share({{"count", 100}}, per_window, 1) == 100);
  CHECK(share({{"count", 100}}, per_window, 3) == 33);
  CHECK(share({{"threshold", 30}, {"statIntervalInMs", 10'000}}, {{"thresholdType", 1}}, 1) == 30);
  CHECK(share({{"threshold", 30}, {"durationInSec", 60}}, {{"thresholdType", 0}}, 2) == 30);
}

TEST_CASE("closing ends what waits and goes on with releases") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  script.Acquire({.wait = 1h});
  script.Expect("acquire");
  script.Release(script.held[0]);
  const Json release = script.Expect("release");
  script.session.Close(5);
  script.Tell();
  CHECK(script.answers.back().outcome == Outcome::kUnknown);
  const Json cancel = script.Expect("cancel");
  script.Expect("ping");  // Nothing was heard since the acquire.
  CHECK_FALSE(script.session.settled());
  script.Answer(release, Json::array({6}));
  script.Answer(cancel, Json::array({6}));
  CHECK(script.session.settled());
  script.Acquire();
  CHECK(script.answers.back().outcome == Outcome::kBadRequest);
  CHECK(script.answers.back().message == "the client is closed");
  CHECK(script.TakeRequest().is_null());
}

TEST_CASE("a session that is abandoned ends all calls, releases too, and asks nothing more") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(2));
  script.Acquire({.wait = 1h});
  script.Release(script.held[0]);
  script.Expect("acquire");
  script.Expect("release");
  script.session.Abandon("the disk broke", 5);
  script.Tell();
  CHECK(script.answers.back().outcome == Outcome::kUnknown);
  CHECK(script.answers.back().message.ends_with("the disk broke"));
  REQUIRE(script.released.size() == 1);
  CHECK(script.released[0].outcome == Outcome::kUnknown);
  CHECK(script.session.settled());
  script.Acquire();
  CHECK(script.answers.back().outcome == Outcome::kUnavailable);
  script.Release(script.held[1]);
  REQUIRE(script.released.size() == 2);
  CHECK(script.released[1].outcome == Outcome::kUnavailable);
  CHECK(script.TakeRequest().is_null());
  CHECK(script.session.settled());
}

}  // namespace
}  // namespace nowcalls::client
