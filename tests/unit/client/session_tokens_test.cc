// The tokens of a session: granted, kept, lost, adopted, released.
#include "unit/client/session_script.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

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

TEST_CASE("a token that is adopted twice, or while it is held, is one") {
  Script script;
  script.now = 1;
  script.Connect();
  script.Acquire({.keep = KeepMode::kOff});
  script.Answer(script.Expect("acquire"), Script::Granted(1, 3000));
  const HeldPtr adopted =
      script.session.Adopt({.flow = kSeven, .token = TokenId(1)}, KeepMode::kAlways, script.now);
  CHECK(adopted == script.held[0]);
  CHECK(script.session.Adopt({.token = TokenId(1)}, KeepMode::kOff, script.now) == adopted);
  CHECK(script.session.stats().held == 1);
  script.Tick(2);
  script.Answer(script.Expect("keep"), Json::array({0, 3000}));
  script.Release(adopted);
  script.Answer(script.Expect("release"), Json::array({6}));
  script.Release(script.held[0]);
  CHECK(script.TakeRequest().is_null());
  REQUIRE(script.released.size() == 2);
  CHECK(script.released[1].ok());
  CHECK(script.session.stats().held == 0);
  script.Tick(5000);
  CHECK(script.TakeRequest().is_null());
}

TEST_CASE("a grant that no server gives ends the connection, and is asked again on the next one") {
  Script script;
  script.Connect();
  script.Acquire();
  script.Answer(script.Expect("acquire"), Script::Granted(1));
  uint64_t token = 0;
  SUBCASE("no token") { token = 0; }
  SUBCASE("a token id that is none") { token = uint64_t{1} << 63; }
  SUBCASE("a token that is held") { token = 1; }
  CAPTURE(token);
  script.Acquire();
  const Json asked = script.Expect("acquire");
  const Json answer = Json::array({1, asked[0], nullptr, Script::Granted(token)});
  CHECK(!script.session.Received(testing::ToMessagePack(answer), script.now).ok());
  script.Break();
  CHECK(script.answers.size() == 1);
  script.Connect(1);
  (void)script.Expect("keep");
  const Json again = script.Expect("acquire");
  CHECK(Script::RequestId(again) == Script::RequestId(asked));
  script.Answer(again, Script::Granted(2));
  REQUIRE(script.held.size() == 2);
  CHECK(script.held[1]->grant.token == TokenId(2));
}

TEST_CASE("whatever hold a server tells, a token is kept at a bearable pace") {
  Script script;
  script.Connect();
  uint64_t hold_ms = 13;
  int64_t due_ms = 10;
  SUBCASE("a very short one") {}
  SUBCASE("one beyond all rules") {
    hold_ms = UINT64_MAX;
    due_ms = int64_t{10} * 24 * 3600 * 1000 + 1;
  }
  script.Acquire({.keep = KeepMode::kAlways});
  script.Answer(script.Expect("acquire"), Script::Granted(1, hold_ms));
  script.now = due_ms - 1;
  CHECK(script.session.Tick(script.now).ok());
  if (hold_ms == 13) CHECK(script.session.Wakeup() == due_ms);
  for (Json request = script.TakeRequest(); !request.is_null(); request = script.TakeRequest()) {
    CHECK(request[1] != "keep");
  }
}

}  // namespace
}  // namespace nowcalls::client
