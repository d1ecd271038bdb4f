// Vectors of what a server may send, and of answers that do not come.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "unit/client/vector_cases.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

// What arrives.

TEST_CASE("vector: messages come in pieces, and several at once") {
  VectorScript script = Begin("messages in pieces and together");
  script.Connect();
  script.Acquire("a");
  script.Acquire("b");
  script.Acquire("c");
  const Json a = script.AnswerTo("acquire", Granted(Terms(0)));
  const Json b = script.AnswerTo("acquire", Granted(Terms(0), 102));
  const Json c = script.AnswerTo("acquire", Blocked("level"));
  const std::string bytes = testing::ToMessagePack(a);
  script.At(10);
  script.ReceiveBytes(bytes.substr(0, 1));
  script.ReceiveBytes(bytes.substr(1, 9));
  script.ReceiveBytes(bytes.substr(10));
  script.At(20);
  const Json lost = Json::array({2, "lost", Json::array({102, 1001, "admin"})});
  script.Receive({c, b, lost});
  Check(script);
}

TEST_CASE("vector: what a later server adds is not looked at") {
  VectorScript script = Begin("what a later server adds");
  script.Connected();
  script.Answer("hello", Json::array({"2.0", 9, 2, 0, "more", Json{{"a", 1}}}));
  script.Acquire("a");
  script.Receive({Json::array({2, "gossip", Json::array({"x", 1})}),
                  Json::array({2, "lost", Json::array({999, 1001, "admin"})})});
  script.Answer("acquire", Json::array({0, 101, 13, 1, 2, 4000, nullptr, nullptr,
                                        Json::array({0, 2000, 60'000, "more"}), "more"}));
  script.Receive({Json::array({2, "lost", Json::array({101, 1001, "eclipse", 5})})});
  script.Acquire("b");
  script.Receive({Json::array({1, 3, Json::array({99, "NEWER", "because", "more"}), nullptr})});
  Check(script);
}

TEST_CASE("vector: another protocol ends the connection") {
  VectorScript script = Begin("garbage ends the connection");
  script.Acquire("a");
  script.Connected();
  script.ReceiveBytes("HTTP/1.1 400 Bad Request\r\n");
  script.Disconnected();
  script.Connected();
  script.ReceiveBytes("\xc1");
  script.Disconnected();
  script.Connect();
  script.Answer("acquire", Granted(Terms(0)));
  Check(script);
}

// Each is the end of a connection, and leaves the acquire unanswered.
TEST_CASE("vector: a message that no server sends ends the connection") {
  const Json wrong[] = {
      Json::array({1, 99, nullptr, Json::array({6})}),          // Nothing was asked.
      Json::array({0, 2, "ping", Json::array()}),               // A request.
      "hello",                                                  // No array.
      Json::array({7, 2, nullptr, nullptr}),                    // No type of message.
      Json::array({1, 2, nullptr, 5}),                          // No result.
      Json::array({1, 2, nullptr, Json::array({0, 101})}),      // Too short a result.
      Json::array({1, 2, nullptr, Granted(Terms(0), 0)}),       // No token.
      Json::array({1, 2, nullptr, Granted(Json::array({0}))}),  // No terms.
      Json::array({1, 2, "no", nullptr}),                       // No error.
      Json::array({2, "lost", Json::array({101})}),             // Half a notification.
      // No request has msgid 0, and identify was not asked.
      Json::array({1, 0, nullptr, Json::array({"checkout", "client", "secret", nullptr})}),
      Json::array({1, 2, Json::array({1, "MALFORMED", "because"}), nullptr}),
  };
  VectorScript script = Begin("a wrong message ends the connection");
  script.Acquire("a", {.timeout = 60s});
  for (const Json& message : wrong) {
    script.Elapse(100);
    script.Connect();
    script.Receive({message});
    script.Disconnected();
  }
  script.Connect();
  script.Answer("acquire", Granted(Terms(0)));
  script.Release("a");
  script.Answer("release", kReleased);
  script.Answer("cancel", Json::array({7}));
  Check(script);
}

TEST_CASE("vector: each refusal") {
  VectorScript script = Begin("each refusal");
  script.Connect();
  for (const char* limit : {"level", "draining", "client_cap", "waiters_ahead", "queue_full",
                            "queue_timeout", "over_level", "param"}) {
    script.Acquire(limit);
    script.Answer("acquire", Blocked(limit));
  }
  for (const char* limit : {"token_limit", "key_limit", "disk_low"}) {
    script.Acquire(limit);
    script.Answer("acquire", Json::array({-2, 0, 0, 1, 2, 0, limit}));
  }
  script.Acquire("no rule");
  script.Answer("acquire", Json::array({3, 0, 0, 0, 0, 0, nullptr}));
  script.Acquire("bad request");
  script.Answer("acquire", Json::array({-4, 0, 0, 0, 0, 0, nullptr}));
  script.Acquire("of the other kind");
  script.Answer("acquire", Json::array({-4, 0, 0, 0, 0, 0, "param"}));
  Check(script);
}

TEST_CASE("vector: each error") {
  VectorScript script = Begin("each error");
  script.Connect();
  const std::pair<int, const char*> errors[] = {
      {2, "UNKNOWN_METHOD"}, {3, "BAD_PARAMS"}, {4, "HELLO_STATE"}, {5, "OVERLOADED"},
      {6, "UNSUPPORTED"},    {7, "CONFLICT"},   {8, "INTERNAL"},    {9, "PERMISSION"}};
  for (const auto& [code, name] : errors) {
    script.Acquire(name);
    script.Refuse("acquire", code, name);
  }
  script.Acquire("held");
  script.Answer("acquire", Granted(Terms(0)));
  script.Release("held");
  script.Refuse("release", 8, "INTERNAL");
  Check(script);
}

TEST_CASE("vector: no token is granted twice") {
  VectorScript script = Begin("a token that is held already");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0)));
  script.Acquire("b");
  script.Answer("acquire", Granted(Terms(0)));
  script.Disconnected();
  script.Connect(1);
  script.Answer("acquire", Blocked("level"));
  Check(script);
}

// What does not arrive.

TEST_CASE("vector: a late grant that is refused when asked again is cancelled") {
  VectorScript script = Begin("a late grant that is gone");
  script.Connect();
  script.Acquire("a", {.wait = 10s});
  script.At(2500);
  script.Answer("acquire", Granted(Terms(0)));
  script.At(2510);
  script.Answer("acquire", Blocked("level"));
  script.Answer("cancel", Json::array({7}));
  Check(script);
}

TEST_CASE("vector: what waits is asked again when its server ends") {
  VectorScript script = Begin("a server that ends");
  script.Connect();
  script.Acquire("a", {.wait = 10s});
  script.At(2000);
  script.Answer("acquire", Json::array({5, 0, 0, 0, 0, 0, nullptr}));
  script.Disconnected();
  script.At(2500);
  script.Connect();
  script.Answer("acquire", Granted(Terms(0)));
  script.Release("a");
  script.Answer("release", kReleased);
  Check(script);
}

TEST_CASE("vector: a group of which a token has ended before its answer came") {
  VectorScript script = Begin("a group that has lost a token");
  script.Connect();
  script.AcquireAll("g", {{FlowId(1001), 1}, {FlowId(1002), 1}});
  script.At(100);
  script.Disconnected();
  script.Connect(1);
  script.Answer("acquire_all", Json::array({-4, Json::array(), "request_id", 0, 0, 0}));
  script.Answer("cancel", kReleased);
  // Of one attempt it is a defect.
  script.AcquireAll("h", {{FlowId(1001), 1}, {FlowId(1002), 1}});
  script.Answer("acquire_all", Json::array({-4, Json::array(), "request_id", 0, 0, 0}));
  Check(script);
}

TEST_CASE("vector: a group that strays is cancelled behind its last token") {
  VectorScript script = Begin("a group that strays");
  script.Connect();
  script.AcquireAll("g", {{FlowId(1001), 1}, {FlowId(1002), 1}});
  script.At(100);
  script.Disconnected();
  script.Connect(2);
  script.Answer("acquire_all", Json::array({0,
                                            Json::array({Json::array({101, 13, 4000, Terms(0)}),
                                                         Json::array({102, 14, 4000, Terms(0)})}),
                                            nullptr, 0, 0, 0}));
  script.Release("g/1");
  script.Answer("release", kReleased);
  script.Lost(101, "admin");
  script.Answer("cancel", Json::array({7}));
  Check(script);
}

TEST_CASE("vector: a call that is given up asks a silent server for a sign of life") {
  VectorScript script = Begin("silence after a call that was given up");
  script.Connect();
  script.Acquire("a", {.timeout = 1s});
  script.TickDue();
  script.TickDue();
  script.Disconnected();
  script.Connect();
  script.Answer("cancel", Json::array({7}));
  Check(script);
}

TEST_CASE("vector: a keep that meets an error is asked again a third of the hold later") {
  VectorScript script = Begin("a keep that meets an error");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(2)));
  script.TickDue();
  script.Elapse(100);
  script.Refuse("keep", 8, "INTERNAL");
  script.TickDue();
  script.Answer("keep", KeptUnder(Terms(2)));
  script.TickDue();
  script.Answer("keep", Json::array({7, 0}));
  script.Release("a");
  Check(script);
}

TEST_CASE("vector: answers to two keeps cross") {
  VectorScript script = Begin("answers to two keeps cross");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(2)));
  script.TickDue();
  script.At(2000);
  script.Keep("a");
  const Json first = script.AnswerTo("keep", KeptUnder(Terms(2)));
  script.At(2010);
  script.Answer("keep", Json::array({0, 1000, Terms(2)}));
  script.At(2020);
  script.Receive({first});
  script.TickDue();
  script.Lost(101, "admin");
  script.Answer("keep", KeptUnder(Terms(2)));
  Check(script);
}

TEST_CASE("vector: a keep of the caller") {
  VectorScript script = Begin("a keep of the caller");
  script.Connect();
  script.Acquire("a");
  script.Answer("acquire", Granted(Terms(0)));
  script.At(1000);
  script.Keep("a");
  script.At(1010);
  script.Answer("keep", KeptUnder(Terms(0)));
  script.Acquire("lost");
  script.Answer("acquire", Granted(Terms(0), 102));
  script.Keep("lost");
  script.Lost(102, "admin");
  script.Answer("keep", KeptUnder(Terms(0)));
  script.At(1500);
  script.Keep("a");
  script.Disconnected();
  script.At(2000);
  script.Connect(1);
  script.Keep("a");
  script.Answer("keep", Json::array({7, 0}));
  Check(script);
}

}  // namespace
}  // namespace nowcalls::client
