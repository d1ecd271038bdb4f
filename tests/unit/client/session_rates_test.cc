// A session's calls a second: alone, and together with tokens.
#include "unit/client/session_script.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

Json ShouldWait(int64_t wait_ms) { return Json::array({2, 0, wait_ms, nullptr}); }

TEST_CASE("a request that is to wait is told when its calls may be made") {
  Script script;
  script.Connect();
  script.Request({}, {.prioritized = true});
  script.Answer(script.Expect("request"), ShouldWait(300));
  CHECK(script.passed.empty());
  CHECK(script.session.Wakeup() == 300);
  SUBCASE("while the connection stands") {}
  SUBCASE("and when it breaks, for it is counted") { script.Break(); }
  SUBCASE("and when no server is reached") {
    script.Break();
    script.session.DialFailed("refused", 0);
  }
  script.Tick(299);
  CHECK(script.passed.empty());
  script.Tick(300);
  REQUIRE(script.passed.size() == 1);
  CHECK(script.passed[0].ok());
  CHECK(script.passed[0].wait == 0ms);
}

TEST_CASE("a request that cannot sleep is told how long to wait") {
  Script script;
  script.Connect();
  int64_t wait_ms = 300;
  Milliseconds left{300};
  SUBCASE("since it is not to") { script.Request({}, {.sleep = false}); }
  SUBCASE("since its time would be over") { script.Request({}, {.timeout = 299ms}); }
  SUBCASE("since the client is closed meanwhile") {
    script.Request();
    wait_ms = 400;
  }
  script.Answer(script.Expect("request"), ShouldWait(wait_ms));
  if (wait_ms == 400) {
    script.now = 100;
    script.session.Close(script.now);
    script.Tell();
  }
  REQUIRE(script.passed.size() == 1);
  CHECK(script.passed[0].ok());
  CHECK(script.passed[0].wait == left);
}

TEST_CASE("a group may ask for calls a second, which have no permit") {
  Script script;
  script.Connect();
  script.AcquireAll({{kSeven, 1, "key"}, {FlowId(8), 2, "key", true}, {FlowId(9), 1, {}, true}},
                    {.timeout = 10s});
  const Json asked = script.Expect("acquire_all");
  CHECK(asked[2][0] == Json::array({Json::array({7, 1, "key"}), Json::array({8, 2, "key", 1}),
                                    Json::array({9, 1, nullptr, 1})}));
  const Json token = Json::array({1, 5, 4000, Script::Terms(2)});
  SUBCASE("it is told after the longest of their waits") {
    script.Answer(asked,
                  Json::array({0, Json::array({token, {0, 0, 0}, {0, 0, 100}}), nullptr, 0, 0, 0}));
    CHECK(script.answers.empty());
    script.Tick(100);
    REQUIRE(script.held.size() == 3);
    CHECK(script.held[0]->grant.token == TokenId(1));
    CHECK(script.held[1] == nullptr);
    CHECK(script.held[2] == nullptr);
  }
  SUBCASE("a late grant that is asked again keeps the waits of the first answer") {
    script.now = 2500;
    script.Answer(asked,
                  Json::array({0, Json::array({token, {0, 0, 0}, {0, 0, 100}}), nullptr, 0, 0, 0}));
    const Json again = script.Expect("acquire_all");
    script.now = 2550;
    script.Answer(again,
                  Json::array({0, Json::array({token, {0, 0, 0}, {0, 0, 0}}), nullptr, 0, 0, 0}));
    CHECK(script.session.Wakeup() == 2600);
  }
  SUBCASE("a token for a rate is none") {
    const Json answer = Json::array(
        {1, asked[0], nullptr,
         Json::array({0, Json::array({token, {2, 6, 4000}, {0, 0, 0}}), nullptr, 0, 0, 0})});
    CHECK_FALSE(script.session.Received(testing::ToMessagePack(answer), 0).ok());
  }
}

TEST_CASE("a group of rates alone is not asked again: it may have been counted") {
  Script script;
  script.Connect();
  const auto call = script.AcquireAll({{kSeven, 1, {}, true}, {FlowId(8), 1, {}, true}});
  script.Expect("acquire_all");
  script.Break();
  CHECK(call->answer.outcome == Outcome::kUnknown);
}

}  // namespace
}  // namespace nowcalls::client
