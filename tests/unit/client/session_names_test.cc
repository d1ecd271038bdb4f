// Flows by name in a session: what it asks for, and how it names flows to its callers.
#include <string>
#include <string_view>

#include "client/flow_text.h"
#include "nowcalls/flow_name.h"
#include "unit/client/session_script.h"

namespace nowcalls::client {
namespace {

// A row of rules_list.
Json RuleOf(const char* resource, Json config) {
  config.update(Json{{"flowId", 77}, {"thresholdType", 1}});
  return Json{{"resource", resource}, {"count", 4}, {"clusterConfig", std::move(config)}};
}

// One acquire; its answer and token go to the script.
std::shared_ptr<AcquireCall> Ask(Script* script, FlowId flow, AcquireOptions options = {}) {
  auto call = std::make_shared<AcquireCall>();
  call->demands = {{flow, options.count, options.param}};
  call->options = std::move(options);
  call->tell = [script](const nowcalls::Answer& answer, const std::vector<HeldPtr>& tokens) {
    script->answers.push_back(answer);
    script->held.insert(script->held.end(), tokens.begin(), tokens.end());
  };
  script->session.Acquire(call, script->now);
  script->Tell();
  return call;
}

const FlowId kCheckout = FlowNamed("checkout");
const FlowId kSearch = FlowNamed("search");

TEST_CASE("a name has an id of its own in the process, which no rule has") {
  CHECK(kCheckout == FlowNamed(std::string("check") + "out"));
  CHECK(kCheckout != kSearch);
  CHECK(kCheckout.value < 0);
  CHECK(NameOfFlow(kCheckout) == "checkout");
  CHECK(NameOfFlow(kSearch) == "search");
  CHECK(NameOfFlow(FlowNamed("7")) == "7");
  for (const int64_t number : {int64_t{0}, int64_t{7}, INT64_MAX, int64_t{-1}, INT64_MIN / 2}) {
    CHECK(NameOfFlow(FlowId{number}).empty());
  }
  CHECK(FlowNamed("") == FlowId{});
  CHECK(FlowNamed(std::string(1025, 'x')) == FlowId{});
  // A view stays good while others are added.
  const std::string_view before = NameOfFlow(kCheckout);
  for (int i = 0; i < 1000; ++i) FlowNamed("name " + std::to_string(i));
  CHECK(before == "checkout");
  CHECK(NameOfFlow(FlowNamed("name 500")) == "name 500");
}

TEST_CASE("a text is a number or a name") {
  CHECK(ParseFlow("7").value() == FlowId{7});
  CHECK(ParseFlow("007").value() == FlowId{7});
  CHECK(ParseFlow("checkout").value() == kCheckout);
  for (const char* name : {"7x", "-", "GET:/orders?a=1"}) {
    CHECK(NameOfFlow(ParseFlow(name).value()) == name);
  }
  for (const char* text : {"0", "-1", "-7", "9223372036854775808"}) {
    CHECK(ParseFlow(text).status().message() ==
          "'" + std::string(text) + "' is not a whole number from 1 to 9223372036854775807");
  }
  CHECK(ParseFlow("").status().message() == "a resource must be 1..1024 bytes, got 0");
  CHECK_FALSE(ParseFlow("a\nb").ok());
  CHECK_FALSE(ParseFlow(std::string(1025, 'x')).ok());
  CHECK(FlowText(FlowId{7}) == "flow 7");
  CHECK(FlowText(kCheckout) == "flow 'checkout'");
  CHECK(FlowWord(kCheckout) == "checkout");
}

TEST_CASE("a name is asked for as it is, and the grant has it") {
  Script script;
  script.Connect();
  Ask(&script, kCheckout, {.count = 2});
  const Json acquire = script.Expect("acquire");
  CHECK(acquire[2][0] == "checkout");
  CHECK(acquire[2][1] == 2);
  script.Answer(acquire, Script::Granted(5));
  REQUIRE(script.held.size() == 1);
  CHECK(script.held[0]->grant.flow == kCheckout);
  CHECK(script.answers[0].flow == kCheckout);

  script.AcquireAll({{kCheckout, 1}, {kSeven, 2}, {kSearch, 3, {}, true}});
  CHECK(script.Expect("acquire_all")[2][0] ==
        Json::parse(R"([["checkout", 1], [7, 2], ["search", 3, null, 1]])"));
}

TEST_CASE("rates take names, by value too") {
  Script script;
  script.Connect();
  for (const bool by_value : {false, true}) {
    auto call = std::make_shared<RateCall>();
    call->flow = kSearch;
    call->by_value = by_value;
    if (by_value) call->values = {"x"};
    call->tell = [&](Passed told) { script.passed.push_back(std::move(told)); };
    script.session.Request(call, 0);
    const Json asked = script.Expect(by_value ? "request_param" : "request");
    CHECK(asked[2][0] == "search");
    script.Answer(asked, Json::array({3, 0, 0, nullptr}));
  }
  REQUIRE(script.passed.size() == 2);
  CHECK(script.passed[0].message == "flow 'search' has no rule");
  CHECK(script.passed[1].flow == kSearch);
}

TEST_CASE("a refusal names the flow as the caller did") {
  Script script;
  script.Connect();
  Ask(&script, kCheckout);
  script.Answer(script.Expect("acquire"), Script::Blocked("level"));
  REQUIRE(script.answers.size() == 1);
  CHECK(script.answers[0].message == "flow 'checkout' refused by level: 2 of 2 in progress");
  CHECK(script.answers[0].flow == kCheckout);
}

// The server tells a group the number of the rule in the way.
TEST_CASE("a refused group tells the name where the number leaves no doubt") {
  Script script;
  script.Connect();
  const auto told = [&](std::vector<FlowDemand> demands, int64_t number) {
    script.AcquireAll(std::move(demands));
    script.Answer(script.Expect("acquire_all"),
                  Json::array({1, Json::array(), "level", number, 1, 1}));
    return script.answers.back().message;
  };
  const std::string refused = " refused by level: 1 of 1 in progress";
  CHECK(told({{kCheckout, 1}, {kSeven, 1}}, 9) == "flow 'checkout'" + refused);
  CHECK(told({{kCheckout, 1}, {kSeven, 1}}, 7) == "flow 7" + refused);
  CHECK(told({{kCheckout, 1}, {kCheckout, 1, "x"}}, 9) == "flow 'checkout'" + refused);
  CHECK(told({{kCheckout, 1}, {kSearch, 1}}, 9) == "flow 9" + refused);
  CHECK(told({{kCheckout, 1}, {kSeven, 1}}, 0) == "the request" + refused);
}

TEST_CASE("the rule of a name is asked for by name, and found by its resource") {
  Script script;
  script.Connect();
  Ask(&script, kCheckout, {.prioritized = true});
  script.Answer(script.Expect("acquire"), Script::Blocked("level"));
  const Json asked = script.Expect("rules_list");
  CHECK(asked[2] == Json::parse(R"([null, 2, null, "checkout"])"));
  script.Answer(asked,
                Json::array({Json::array({RuleOf("other", {{"acquireRefuseStrategy", 0}}),
                                          RuleOf("checkout", {{"acquireRefuseStrategy", 1}})}),
                             nullptr}));
  script.Tick(20);
  script.Answer(script.Expect("acquire"), Script::Blocked("level"));
  CHECK(script.answers.size() == 1);
}

TEST_CASE("the fallback counts a name by itself, with the tokens that it holds on the server") {
  Script script(OptionsWith(Fallback::kByRule));
  script.Connect();  // Two sessions are online.
  Ask(&script, kCheckout);
  script.Answer(script.Expect("rules_list"),
                Json::array({Json::array({RuleOf("checkout", {{"fallbackToLocalWhenFail", true}})}),
                             nullptr}));
  script.Answer(script.Expect("acquire"), Script::Granted(5));
  script.Break();
  script.session.DialFailed("refused", 0);
  CHECK(Ask(&script, kCheckout)->answer.ok());
  const auto refused = Ask(&script, kCheckout);
  CHECK(script.answers.back().message ==
        "flow 'checkout' refused by the local share: 2 of 2 in progress");
  CHECK(refused->answer.local);
  script.Release(script.held[0]);
  CHECK(Ask(&script, kCheckout)->answer.ok());
}

TEST_CASE("a configured share is that of the flow as calls name it") {
  ClientOptions options = OptionsWith(Fallback::kLocal);
  options.local_levels = {{kCheckout, 1}, {kSeven, 2}};
  Script script(options);
  script.session.DialFailed("refused", 0);
  CHECK(Ask(&script, kCheckout)->answer.ok());
  CHECK_FALSE(Ask(&script, kCheckout)->answer.ok());
  for (const bool passes : {true, true, false}) CHECK(Ask(&script, kSeven)->answer.ok() == passes);
}

}  // namespace
}  // namespace nowcalls::client
