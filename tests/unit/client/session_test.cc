// The session against a server whose answers the test writes, at times that the test says.
#include "client/session.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/json.h"
#include "support/rpc_client.h"
#include "wire/splitter.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.
using testing::Json;

constexpr FlowId kSeven{7};

ClientOptions OptionsWith(Fallback fallback) {
  ClientOptions options;
  options.addresses = {"a:1"};
  options.client_id = "me";
  options.timeout = 1s;
  options.fallback = fallback;
  return options;
}

// A session, its server, and what its callers were told.
struct Script {
  explicit Script(ClientOptions options = OptionsWith(Fallback::kFail))
      : session(std::move(options), Prng(1), 0) {}

  // The next request as [msgid, method, params]; null if there is none.
  Json TakeRequest() {
    sent += session.output()->view();
    session.output()->Clear();
    wire::MessageSplitter splitter;
    size_t bytes = 0;
    if (splitter.Next(sent, &bytes) != wire::MessageSplitter::Outcome::kMessage) return nullptr;
    const Json message = testing::FromMessagePack(sent.substr(0, bytes));
    sent.erase(0, bytes);
    return Json::array({message[1], message[2], message[3]});
  }
  Json Expect(std::string_view method) {
    Json request = TakeRequest();
    REQUIRE_MESSAGE(!request.is_null(), "no request, instead of ", method);
    CHECK(request[1].get<std::string>() == method);
    return request;
  }
  void Receive(const Json& message) {
    REQUIRE(session.Received(testing::ToMessagePack(message), now).ok());
    Tell();
  }
  void Answer(const Json& request, const Json& result) {
    Receive(Json::array({1, request[0], nullptr, result}));
  }
  void Refuse(const Json& request, int code, const char* name) {
    Receive(Json::array({1, request[0], Json::array({code, name, "because"}), nullptr}));
  }
  void Tell() {
    Session::Events events = session.TakeEvents();
    for (const HeldPtr& held : events.lost) lost.push_back(held->lost_reason);
    for (const CallPtr& call : events.finished) call->Notify();
  }
  void Tick(int64_t at) {
    now = at;
    REQUIRE(session.Tick(now).ok());
    Tell();
  }

  void Connect(uint64_t resumed = 0) {
    session.Connected(now);
    Answer(Expect("hello"), Json::array({"1.0", 9, 2, resumed}));
    CHECK(session.ready());
  }
  void Break() {
    session.Disconnected("it broke", now);
    sent.clear();
    Tell();
  }

  std::shared_ptr<AcquireCall> Acquire(AcquireOptions options = {}) {
    auto call = std::make_shared<AcquireCall>();
    call->demands = {{kSeven, options.count, options.param}};
    call->options = std::move(options);
    call->tell = [this](const nowcalls::Answer& answer, const std::vector<HeldPtr>& tokens) {
      answers.push_back(answer);
      held.insert(held.end(), tokens.begin(), tokens.end());
    };
    session.Acquire(call, now);
    Tell();
    return call;
  }
  void Release(const HeldPtr& token) {
    session.Release(
        token, [this](Released told) { released.push_back(std::move(told)); }, now);
    Tell();
  }
  static Json Granted(uint64_t token, uint64_t hold_ms = 4000) {
    return Json::array({0, token, 5, 1, 2, hold_ms, nullptr});
  }
  static Json Blocked(const char* limit) { return Json::array({1, 0, 0, 2, 2, 0, limit}); }
  static uint64_t RequestId(const Json& acquire) {
    return acquire[2][2].at("request_id").get<uint64_t>();
  }

  Session session;
  int64_t now = 0;
  std::string sent;
  std::vector<nowcalls::Answer> answers;
  std::vector<HeldPtr> held;
  std::vector<Released> released;
  std::vector<std::string> lost;
};

}  // namespace

TEST_CASE("nothing is asked before hello is answered") {
  Script script;
  script.Acquire();
  script.session.Connected(0);
  const Json hello = script.Expect("hello");
  CHECK(hello[2] == Json::array({1, "default", "me", Json{{"lost", true}}}));
  CHECK(script.TakeRequest().is_null());
  script.Answer(hello, Json::array({"1.0", 9, 1, 0}));
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  REQUIRE(script.held.size() == 1);
  CHECK(script.held[0]->grant.token == TokenId(1));
  CHECK(script.held[0]->grant.hold == 4s);
}

TEST_CASE("a server that does not know the option lost is greeted without it") {
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

TEST_CASE("an attempt on a broken connection is cancelled when its request id stands for nothing") {
  Script script;
  script.Connect();
  script.Acquire();
  const Json first = script.Expect("acquire");
  script.Break();
  script.Connect();
  const Json again = script.Expect("acquire");
  const uint64_t request_id = Script::RequestId(first);
  SUBCASE("when it is refused") {
    script.Answer(again, Script::Blocked("level"));
    REQUIRE(script.answers.size() == 1);
    CHECK(script.answers[0].outcome == Outcome::kRefused);
    CHECK(script.Expect("cancel")[2][0] == request_id);
    CHECK(script.session.stats().cancelled == 0);  // Nobody has given it up.
  }
  SUBCASE("when it is given up while no server is reached") {
    script.Break();
    script.Tick(1'000);
    script.Connect();
    CHECK(script.Expect("cancel")[2][0] == request_id);
  }
  SUBCASE("when its token is released, behind the release") {
    script.Answer(again, Script::Granted(1));
    CHECK(script.TakeRequest().is_null());
    script.Release(script.held[0]);
    script.Expect("release");
    CHECK(script.Expect("cancel")[2][0] == request_id);
  }
  SUBCASE("when its token is lost") {
    script.Answer(again, Script::Granted(1));
    script.Receive(Json::array({2, "lost", Json::array({1, 7, "admin"})}));
    CHECK(script.lost.size() == 1);
    CHECK(script.Expect("cancel")[2][0] == request_id);
  }
}

TEST_CASE(
    "a group of which an attempt may still arrive is cancelled with the end of its last token") {
  Script script;
  script.Connect();
  auto call = std::make_shared<AcquireCall>();
  call->all = true;
  call->demands = {{FlowId(7), 1, {}}, {FlowId(8), 1, {}}};
  std::vector<HeldPtr> held;
  call->tell = [&](const Answer&, const std::vector<HeldPtr>& tokens) { held = tokens; };
  script.session.Acquire(call, 0);
  script.Expect("acquire_all");
  script.Break();
  script.Connect();
  const Json again = script.Expect("acquire_all");
  const Json tokens = Json::array({Json::array({1, 5, 4000}), Json::array({2, 6, 4000})});
  script.Answer(again, Json::array({0, tokens, nullptr, 0, 1, 2}));
  REQUIRE(held.size() == 2);
  script.Release(held[0]);
  script.Expect("release");
  CHECK(script.TakeRequest().is_null());
  script.Release(held[1]);
  script.Expect("release");
  CHECK(script.Expect("cancel")[2][0] == call->request_id);
}

TEST_CASE("an acquire without a broken connection needs no cancel") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  script.Release(script.held[0]);
  script.Expect("release");
  CHECK(script.TakeRequest().is_null());
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

TEST_CASE("a release is asked until it is answered, and is not lost if an attempt had no answer") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  script.Release(script.held[0]);
  const Json release = script.Expect("release");
  SUBCASE("done at once") {
    script.Answer(release, Json::array({6}));
    REQUIRE(script.released.size() == 1);
    CHECK_FALSE(script.released[0].lost);
  }
  SUBCASE("gone at the first attempt: it was lost") {
    script.Answer(release, Json::array({7}));
    REQUIRE(script.released.size() == 1);
    CHECK(script.released[0].ok());
    CHECK(script.released[0].lost);
  }
  SUBCASE("gone after an attempt without an answer") {
    script.Break();
    script.Tick(1000);
    REQUIRE(script.released.size() == 1);  // Its caller does not wait for ever.
    CHECK(script.released[0].outcome == Outcome::kUnknown);
    script.Connect();
    script.Answer(script.Expect("release"), Json::array({7}));
    CHECK(script.session.stats().lost == 0);
    CHECK(script.session.settled());
  }
}

TEST_CASE("a token is kept from a third of its hold on, and lost when the server says so") {
  Script script;
  script.Connect();
  script.Acquire({.keep = KeepMode::kAlways});
  script.Answer(script.Expect("acquire"), Script::Granted(1, 300));
  CHECK(script.session.Wakeup() == 101);
  script.Tick(101);
  script.Answer(script.Expect("keep"), Json::array({0, 300}));
  CHECK(script.session.Wakeup() == 202);
  SUBCASE("by an answer to a keep") {
    script.Tick(202);
    script.Answer(script.Expect("keep"), Json::array({7, 0}));
    CHECK(script.lost == std::vector<std::string>{""});
  }
  SUBCASE("by a notification") {
    script.Receive(Json::array({2, "lost", Json::array({1, 7, "admin"})}));
    CHECK(script.lost == std::vector<std::string>{"admin"});
    CHECK(script.held[0]->lost);
  }
  SUBCASE("by a hello that has no tokens") {
    script.Break();
    script.Connect(0);
    CHECK(script.lost == std::vector<std::string>{""});
  }
  SUBCASE("not by a hello that has some: a keep asks") {
    script.Break();
    script.Connect(1);
    script.Answer(script.Expect("keep"), Json::array({0, 300}));
    CHECK(script.lost.empty());
  }
  SUBCASE("not by what is told of other tokens, or in other words") {
    script.Receive(Json::array({2, "lost", Json::array({2, 7, "admin"})}));
    script.Receive(Json::array({2, "news", Json::array({1, 7, "admin"})}));
    CHECK(script.lost.empty());
  }
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

TEST_CASE("the fallback by rule knows the rule as last seen") {
  Script script(OptionsWith(Fallback::kByRule));
  script.Connect();  // Two sessions are online.
  script.Acquire();
  const Json rules = script.Expect("rules_list");
  CHECK(rules[2] == Json::array({nullptr, 1, 6}));
  const auto rule = [](bool local, bool global) {
    return Json{{"count", 5},
                {"clusterConfig", Json{{"flowId", 7},
                                       {"fallbackToLocalWhenFail", local},
                                       {"thresholdType", global ? 1 : 0}}}};
  };
  const auto admitted_of_ten = [&](const Json& rows) {
    script.Answer(rules, Json::array({rows, nullptr}));
    script.Answer(script.Expect("acquire"), Script::Granted(1));
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
  Result<std::optional<RuleView>> view = ReadRuleView(
      testing::ToMessagePack(Json::array(
          {Json::array(
               {Json{{"count", 4},
                     {"paramFlowItemList", Json::array({Json{{"object", "vip"}, {"count", 40}},
                                                        Json{{"object", "9"}, {"count", 0}}})},
                     {"clusterConfig", Json{{"flowId", 7}, {"thresholdType", 1}}}}}),
           nullptr})),
      7);
  REQUIRE(view.ok());
  REQUIRE(view->has_value());
  CHECK((*view)->Share("vip", 2) == 20);
  CHECK((*view)->Share("other", 2) == 2);
  CHECK((*view)->Share(int64_t{9}, 2) == 0);
  CHECK((*view)->Share("other", 100) == 1);
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
  CHECK(script.answers.back().outcome == Outcome::kUnavailable);
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

}  // namespace nowcalls::client
