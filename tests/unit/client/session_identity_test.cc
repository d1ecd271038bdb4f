// A session that shows a secret, or that its server does not let in.
#include "client/answers.h"
#include "unit/client/session_script.h"

namespace nowcalls::client {
namespace {

constexpr char kSecret[] = "nc-0123456789abcdef";

ClientOptions WithSecret(Fallback fallback = Fallback::kFail) {
  ClientOptions options = OptionsWith(fallback);
  options.secret = kSecret;
  return options;
}

Json IdentityOf(const char* name) { return Json::array({name, "client", "secret", nullptr}); }

// The refusal of `request` ends the connection.
void RefuseGreeting(Script* script, const Json& request, int code = 9,
                    const char* name = "PERMISSION") {
  const Json refusal = Json::array({1, request[0], Json::array({code, name, "because"}), nullptr});
  const Status status = script->session.Received(testing::ToMessagePack(refusal), script->now);
  CHECK(status.code() == StatusCode::kUnavailable);
  script->session.Disconnected(status.message(), script->now);
  script->sent.clear();
  script->Tell();
}

TEST_CASE("a secret is shown before hello, without a wait for its answer") {
  Script script(WithSecret());
  script.session.Connected(0);
  const Json identify = script.Expect("identify");
  CHECK(identify[2] == Json::array({kSecret}));
  const Json hello = script.Expect("hello");
  script.Answer(identify, IdentityOf("checkout"));
  CHECK_FALSE(script.session.ready());
  script.Answer(hello, Json::array({"1.0", 9, 2, 0}));
  CHECK(script.session.ready());
  REQUIRE(script.lines.size() == 1);
  CHECK(script.lines[0] == "connected to a:1 as checkout, session 9, 0 tokens");
}

TEST_CASE("an older server, which knows no secrets, is taken as it is") {
  Script script(WithSecret());
  script.session.Connected(0);
  script.Refuse(script.Expect("identify"), 2, "UNKNOWN_METHOD");
  script.Answer(script.Expect("hello"), Json::array({"0.1", 9, 2, 0}));
  CHECK(script.session.ready());
}

TEST_CASE("whom the server does not let in gets no call past it, whatever the fallback is") {
  Fallback fallback = Fallback::kPass;
  SUBCASE("pass") {}
  SUBCASE("by rule") { fallback = Fallback::kByRule; }
  SUBCASE("local") { fallback = Fallback::kLocal; }
  ClientOptions options = WithSecret(fallback);
  options.local_levels = {{kSeven, 5}};
  Script script(options);
  const auto waits = script.Acquire();
  script.session.Connected(0);
  RefuseGreeting(&script, script.Expect("identify"));
  CHECK(waits->answer.outcome == Outcome::kPermissionDenied);
  CHECK(script.answers.back().message == "a:1: identify refused: PERMISSION: because");
  CHECK(script.session.denied());
  CHECK(script.session.stats().why_offline == "a:1: identify refused: PERMISSION: because");
  // Between the attempts, and when the server is not reached any more.
  CHECK(script.Acquire()->answer.outcome == Outcome::kPermissionDenied);
  script.session.DialFailed("Connection refused", 0);
  CHECK(script.Acquire({.wait = Milliseconds(100)})->answer.outcome == Outcome::kPermissionDenied);
  script.Request();
  REQUIRE(script.passed.size() == 1);
  CHECK(script.passed[0].outcome == Outcome::kPermissionDenied);
  // One warning, and it tells no secret.
  REQUIRE(script.lines.size() == 1);
  CHECK(script.lines[0].starts_with("not let in"));
  CHECK(script.lines[0].find(kSecret) == std::string::npos);
  // An operator has mended the access file.
  script.session.Connected(0);
  script.Answer(script.Expect("identify"), IdentityOf("checkout"));
  script.Answer(script.Expect("hello"), Json::array({"1.0", 9, 2, 0}));
  CHECK_FALSE(script.session.denied());
  const auto call = script.Acquire();
  CHECK_FALSE(call->done);
}

TEST_CASE("a hello that the server does not permit ends calls alike, and releases wait") {
  Script script(OptionsWith(Fallback::kPass));
  script.Connect();
  script.Acquire();
  Json asked = script.TakeRequest();
  if (asked[1] == "rules_list") asked = script.Expect("acquire");
  script.Answer(asked, Script::Granted(1));
  script.Break();
  script.Release(script.held[0]);
  script.session.Connected(0);
  RefuseGreeting(&script, script.Expect("hello"));
  CHECK(script.Acquire()->answer.outcome == Outcome::kPermissionDenied);
  CHECK(script.released.empty());
  script.session.Connected(0);
  script.Answer(script.Expect("hello"), Json::array({"1.0", 9, 2, 1}));
  Json next = script.TakeRequest();
  if (next[1] == "rules_list") next = script.TakeRequest();
  CHECK(next[1] == "release");
}

TEST_CASE("a flow that the client may not use is no case for a fallback") {
  Script script(OptionsWith(Fallback::kPass));
  script.Connect();
  const auto call = script.Acquire();
  Json asked = script.TakeRequest();
  if (asked[1] == "rules_list") asked = script.Expect("acquire");
  script.Refuse(asked, 9, "PERMISSION");
  CHECK(call->answer.outcome == Outcome::kPermissionDenied);
  CHECK(script.answers.back().message == "PERMISSION: because");
  CHECK_FALSE(call->answer.local);
  CHECK(script.session.ready());
}

TEST_CASE("a secret that may not travel ends calls as the client's own fault") {
  Script script(WithSecret(Fallback::kPass));
  const auto waits = script.Acquire();
  script.session.Deny(BadRequestOf("the secret needs TLS"), 0);
  script.session.DialFailed("the secret needs TLS", 0);
  script.Tell();
  CHECK(waits->answer.outcome == Outcome::kBadRequest);
  CHECK(script.answers.back().message == "a:1: the secret needs TLS");
  CHECK(script.Acquire()->answer.outcome == Outcome::kBadRequest);
  CHECK_FALSE(script.session.denied());
}

TEST_CASE("a call whose time ends while its secret is not answered yet does not fall back") {
  Script script(WithSecret(Fallback::kPass));
  const auto waits = script.Acquire();
  bool down = false;
  SUBCASE("at the first connection") {}
  SUBCASE("after no server was reached") {
    script.session.DialFailed("refused", 0);
    script.Tell();
    CHECK(waits->answer.local);
    down = true;
  }
  script.session.Connected(0);
  const Json identify = script.Expect("identify");
  const auto asked = script.Acquire();
  CHECK_FALSE(asked->done);
  script.Tick(1000);
  if (!down) CHECK(waits->answer.outcome == Outcome::kUnavailable);
  CHECK(asked->answer.outcome == Outcome::kUnavailable);
  CHECK_FALSE(asked->answer.local);
  script.now = 1100;
  RefuseGreeting(&script, identify);
  CHECK(script.Acquire()->answer.outcome == Outcome::kPermissionDenied);
}

TEST_CASE("a server that sends the secret back does not get it into an answer or a log") {
  const std::string echo = std::string("no ") + kSecret + ", " + kSecret;
  for (const char* method : {"identify", "hello", "acquire"}) {
    for (const int code : {1, 7, 9}) {
      CAPTURE(method);
      CAPTURE(code);
      Script script(WithSecret());
      script.Acquire();
      script.session.Connected(0);
      Json asked = script.Expect("identify");
      if (method != std::string("identify")) {
        script.Answer(asked, IdentityOf("checkout"));
        asked = script.Expect("hello");
      }
      if (method == std::string("acquire")) {
        script.Answer(asked, Json::array({"1.0", 9, 2, 0}));
        asked = script.Expect("acquire");
      }
      const Status status = script.session.Received(
          testing::ToMessagePack(
              Json::array({1, asked[0], Json::array({code, "WORD", echo}), nullptr})),
          0);
      if (!status.ok()) script.session.Disconnected(status.message(), 0);
      script.Tick(10'000);
      std::string shown = status.message() + script.session.stats().why_offline;
      for (const Answer& answer : script.answers) shown += answer.message;
      for (const std::string& line : script.lines) shown += line;
      CHECK(shown.find(kSecret) == std::string::npos);
      CHECK(shown.find("no ..., ...") != std::string::npos);
    }
  }
}

TEST_CASE("a server that is gone before it answered a secret is one that is not reached") {
  Script script(WithSecret(Fallback::kPass));
  script.session.Connected(0);
  const auto waits = script.Acquire();
  script.Break();
  CHECK(waits->answer.outcome == Outcome::kOk);
  CHECK(waits->answer.local);
}

TEST_CASE("a client whose certificate is not let in gets no call past it") {
  Script script(OptionsWith(Fallback::kPass));
  const auto waits = script.Acquire();
  SUBCASE("in the handshake") {
    script.session.Deny(PermissionDeniedOf("it refuses the client's certificate"), 0);
    script.session.DialFailed("it refuses the client's certificate", 0);
  }
  SUBCASE("behind the handshake") {
    script.session.Connected(0);
    script.session.Deny(PermissionDeniedOf("it refuses the client's certificate"), 0);
    script.Break();
  }
  script.Tell();
  CHECK(waits->answer.outcome == Outcome::kPermissionDenied);
  CHECK(script.answers.back().message == "a:1: it refuses the client's certificate");
  CHECK(script.session.denied());
  CHECK(script.Acquire()->answer.outcome == Outcome::kPermissionDenied);
  // The server has got a certificate that it knows.
  script.Connect();
  CHECK_FALSE(script.session.denied());
}

// The server answers a wrong secret late.
TEST_CASE("a greeting with a secret may take a second longer than a call") {
  for (const bool has_secret : {false, true}) {
    Script script(has_secret ? WithSecret() : OptionsWith(Fallback::kFail));
    script.session.Connected(0);
    CHECK(script.session.Wakeup() == (has_secret ? 2000 : 1000));
    CHECK(script.session.Tick(999).ok());
    CHECK(script.session.Tick(1000).ok() == has_secret);
    CHECK_FALSE(script.session.Tick(2000).ok());
  }
}

}  // namespace
}  // namespace nowcalls::client
