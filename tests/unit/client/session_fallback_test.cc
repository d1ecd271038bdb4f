// What a session decides by itself while its server cannot.
#include "unit/client/session_script.h"

namespace nowcalls::client {
namespace {

// A row of rules_list.
Json Rule(double count, Json more = Json::object(), Json config = Json::object()) {
  config.update(Json{{"flowId", 7}, {"fallbackToLocalWhenFail", true}});
  more.update(Json{{"count", count}, {"clusterConfig", config}});
  return more;
}

// A script under a fallback by rule that has seen `rule` and lost its server.
void SeeAndBreak(Script* script, const Json& rule) {
  script->Connect();
  script->Acquire();
  script->Answer(script->Expect("rules_list"), Json::array({Json::array({rule}), nullptr}));
  script->Answer(script->Expect("acquire"), Script::Blocked("level"));
  script->Break();
  script->session.DialFailed("refused", 0);
  script->answers.clear();
}

TEST_CASE("what a process holds of the server counts in its share") {
  ClientOptions options = OptionsWith(Fallback::kLocal);
  options.local_levels = {{kSeven, 3}};
  Script script(options);
  script.Connect();
  script.Acquire({.count = 2});
  script.Expect("rules_list");
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  script.Break();
  script.session.DialFailed("refused", 0);
  CHECK(script.Acquire()->answer.ok());
  const auto refused = script.Acquire();
  CHECK(refused->answer.outcome == Outcome::kRefused);
  CHECK(refused->answer.now_calls == 3);
  SUBCASE("until it releases it") { script.Release(script.held[0]); }
  SUBCASE("until it is lost") { script.Tick(3958); }
  CHECK(script.Acquire({.count = 2})->answer.ok());
  CHECK_FALSE(script.Acquire()->answer.ok());
}

// Its pause is 10 ms at most.
TEST_CASE("a refused acquire is asked again only while its answer can come in time") {
  Script script;
  script.Connect();
  Milliseconds timeout = Milliseconds(1000);
  int64_t took_ms = 340;
  bool again = false;
  SUBCASE("of an answer that takes 340 ms, 680 are not left") {}
  SUBCASE("of one that takes 320 ms, 640 are left") {
    took_ms = 320;
    again = true;
  }
  SUBCASE("20 ms are not left") {
    timeout = Milliseconds(20);
    took_ms = 0;
  }
  const auto call = script.Acquire({.prioritized = true, .timeout = timeout});
  const Json asked = script.Expect("acquire");
  script.now = took_ms;
  script.Answer(asked, Script::Blocked("level"));
  const Json rule = Rule(2, Json::object(), {{"acquireRefuseStrategy", 2}});
  script.Answer(script.Expect("rules_list"), Json::array({Json::array({rule}), nullptr}));
  CHECK(script.answers.empty() == again);
  if (again) return;
  CHECK(call->answer.outcome == Outcome::kRefused);
  CHECK(call->answer.refused_by == RefusedBy::kLevel);
}

TEST_CASE("a server that is full has the fallback decide, unless there is to be none") {
  const auto refusal = [](const char* limit) { return Json::array({-2, 0, 0, 0, 0, 0, limit}); };
  SUBCASE("by rule, of which none was seen: acquires pass") {
    Script script(OptionsWith(Fallback::kByRule));
    script.Connect();
    for (const char* limit : {"token_limit", "key_limit", "disk_low", "a later limit"}) {
      const auto call = script.Acquire();
      Json asked = script.TakeRequest();
      if (asked[1] == "rules_list") asked = script.Expect("acquire");
      script.Answer(asked, refusal(limit));
      CHECK_MESSAGE(call->answer.ok(), limit);
      CHECK(call->answer.local);
    }
  }
  SUBCASE("and so do requests") {
    Script script(OptionsWith(Fallback::kPass));
    script.Connect();
    script.Request();
    script.Expect("rules_list");
    script.Answer(script.Expect("request"), Json::array({-2, 0, 0, "namespace_qps"}));
    REQUIRE(script.passed.size() == 1);
    CHECK(script.passed[0].local);
  }
  SUBCASE("none") {
    Script script(OptionsWith(Fallback::kFail));
    script.Connect();
    const auto call = script.Acquire();
    script.Answer(script.Expect("acquire"), refusal("token_limit"));
    CHECK(call->answer.refused_by == RefusedBy::kTokenLimit);
  }
}

TEST_CASE("no fallback makes up for a rule that is missing, or for a limit of the rule") {
  Script script(OptionsWith(Fallback::kPass));
  script.Connect();
  const auto unruled = script.Acquire();
  script.Answer(script.Expect("acquire"), Json::array({3, 0, 0, 0, 0, 0, nullptr}));
  CHECK(unruled->answer.outcome == Outcome::kNoRule);
  const auto blocked = script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Blocked("level"));
  CHECK(blocked->answer.outcome == Outcome::kRefused);
}

TEST_CASE("a value that was not seen before is limited by the count of its rule") {
  Script script(OptionsWith(Fallback::kByRule));
  SeeAndBreak(&script, Rule(2, {{"kind", "value"}, {"paramIdx", 0}}));
  for (const char* key : {"new", "newer"}) {
    CHECK(script.Acquire({.param = key})->answer.ok());
    CHECK(script.Acquire({.param = key})->answer.ok());
    CHECK(script.Acquire({.param = key})->answer.outcome == Outcome::kRefused);
  }
}

TEST_CASE("the local level of a rate is the calls of one window, however long it is") {
  ClientOptions options = OptionsWith(Fallback::kByRule);
  options.local_levels = {{kSeven, 3}};
  Script script(options);
  SeeAndBreak(&script, Rule(100, Json::object(), {{"windowIntervalMs", 10'000}}));
  for (int i = 0; i < 3; ++i) script.Request();
  script.now = 9'999;
  script.Request();
  script.now = 10'000;
  script.Request();
  REQUIRE(script.passed.size() == 5);
  for (const int passes : {0, 1, 2, 4}) CHECK(script.passed[passes].ok());
  CHECK(script.passed[3].refused_by == RefusedBy::kRate);
}

TEST_CASE("a group with a rate falls back as a whole") {
  ClientOptions options = OptionsWith(Fallback::kLocal);
  options.local_levels = {{kSeven, 2}, {FlowId(8), 1}};
  Script script(options);
  script.session.DialFailed("refused", 0);
  const auto group = [&] {
    return script.AcquireAll({{kSeven, 1, {}}, {FlowId(8), 1, {}, /*rate=*/true}});
  };
  const auto first = group();
  REQUIRE(first->answer.ok());
  REQUIRE(script.held.size() == 2);
  CHECK(script.held[0]->grant.local);
  CHECK(script.held[1] == nullptr);
  CHECK(group()->answer.refused_by == RefusedBy::kRate);
  CHECK(script.Acquire()->answer.ok());  // The group that was refused holds nothing.
}

}  // namespace
}  // namespace nowcalls::client
