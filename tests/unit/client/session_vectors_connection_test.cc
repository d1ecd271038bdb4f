// Vectors of dialling, of servers that do not let a client in, and of the end of a client.
#include <doctest/doctest.h>

#include "unit/client/vector_cases.h"

namespace nowcalls::client {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

ClientOptions TwoAddresses(Fallback fallback = Fallback::kFail) {
  ClientOptions options = Shop(fallback);
  options.addresses = {"a:1", "b:2"};
  return options;
}

ClientOptions ShopWithSecret(Fallback fallback) {
  ClientOptions options = Shop(fallback);
  options.secret = "nc-0123456789abcdef";
  return options;
}

const Json kIdentity = Json::array({"checkout", "client", "secret", nullptr});
const Json kHello = Json::array({"1.0", 9, 2, 0});

// Dialling.

TEST_CASE("vector: another server takes over") {
  VectorScript script = Begin("another server takes over", TwoAddresses());
  script.DialDue();
  script.Connect();
  for (const char* call : {"held", "released"}) {
    script.Acquire(call);
    script.Answer("acquire", Granted(Terms(2), call[0] == 'h' ? 101 : 102));
  }
  script.Acquire("waits", {.wait = 10s});
  script.At(50);
  script.Release("released");
  script.Request("rate");
  script.At(60);
  script.Disconnected();
  script.DialDue();
  script.Elapse(3);
  script.DialFailed();
  script.DialDue();
  script.Connect(2);
  script.Answer("keep", KeptUnder(Terms(2)));
  script.Answer("release", kReleased);
  script.Elapse(400);
  script.Answer("acquire", Granted(Terms(2), 103));
  // A connection that ends is tried again first, then the others.
  script.Disconnected();
  script.DialDue();
  script.DialFailed();
  script.DialDue();
  script.DialFailed();
  script.DialDue();
  script.Connect(2);
  Check(script);
}

TEST_CASE("vector: pauses grow with each row of addresses that fails") {
  VectorScript script = Begin("pauses between rows of addresses grow", TwoAddresses());
  script.Acquire("a", {.wait = 60s});
  for (int row = 0; row < 9; ++row) {
    for (int address = 0; address < 2; ++address) {
      script.DialDue();
      script.DialFailed();
    }
  }
  // Hello alone is of no use: the next end is a failure, too.
  script.DialDue();
  script.Connect();
  script.Disconnected();
  script.DialDue();
  script.Connect();
  script.Answer("acquire", Blocked("queue_timeout"));
  script.Disconnected();
  script.DialDue();
  Check(script);
}

TEST_CASE("vector: a server that is silent after the dial is left") {
  VectorScript script = Begin("hello is not answered", TwoAddresses());
  script.Acquire("a", {.timeout = 8s});
  script.DialDue();
  script.Connected();
  script.TickDue();
  script.Disconnected();
  script.DialDue();
  script.Connected();
  script.TickDue();
  script.Answer("hello", kHello);
  script.Acquire("b");
  script.Answer("acquire", Granted(Terms(0)));
  Check(script);
}

TEST_CASE("vector: a hello that is refused") {
  ClientOptions options = TwoAddresses();
  options.exclusive = true;
  VectorScript script = Begin("hello is refused", options);
  script.Acquire("a");
  script.Connected();
  script.Refuse("hello", 7, "CONFLICT");
  script.Disconnected();
  script.Connected();
  script.Refuse("hello", 5, "OVERLOADED");
  script.Disconnected();
  script.Connected();
  script.Refuse("hello", 6, "UNSUPPORTED");
  script.Disconnected();
  script.Acquire("b");
  script.Connect();
  script.Answer("acquire", Granted(Terms(0)));
  Check(script);
}

// Not let in.

TEST_CASE("vector: a secret that is wrong ends calls, and no fallback lets them pass") {
  VectorScript script = Begin("a wrong secret", ShopWithSecret(Fallback::kPass));
  script.Acquire("waits", {.wait = 10s});
  script.Connected();
  script.At(1000);
  script.Refuse("identify", 9, "PERMISSION");
  script.Disconnected();
  script.Acquire("between");
  script.DialFailed();
  script.Request("not reached any more");
  script.Acquire("may wait", {.wait = 1s});
  script.Connected();
  script.Answer("identify", kIdentity);
  script.Acquire("hello is not answered");
  script.Answer("hello", kHello);
  script.Acquire("let in");
  script.Answer("acquire", Granted(Terms(0)));
  script.Disconnected();
  script.DialFailed();
  script.Acquire("not reached", {}, FlowId(1002));
  Check(script);
}

TEST_CASE("vector: no call falls back while a secret is not answered") {
  VectorScript script = Begin("a secret that is not answered yet", ShopWithSecret(Fallback::kPass));
  script.DialFailed();
  script.Acquire("no server");
  script.Connected();
  script.Acquire("asked");
  script.TickDue();
  script.TickDue();
  script.Acquire("waits");
  script.Disconnected();
  Check(script);
}

TEST_CASE("vector: a hello that is not permitted ends calls, but not releases") {
  VectorScript script = Begin("hello is not permitted", Shop(Fallback::kPass));
  script.Connect();
  script.Acquire("held");
  script.Answer("acquire", Granted(Terms(0)));
  script.Disconnected();
  script.Release("held");
  script.Acquire("waits");
  script.Connected();
  script.Refuse("hello", 9, "PERMISSION");
  script.Disconnected();
  script.Acquire("denied");
  script.Connect(1);
  script.Answer("release", kReleased);
  Check(script);
}

TEST_CASE("vector: a certificate that is not let in") {
  VectorScript script = Begin("a certificate that is not let in", Shop(Fallback::kPass));
  script.Acquire("waits");
  script.Denied();
  script.DialFailed();
  script.Acquire("denied");
  script.Connected();
  script.Denied();
  script.Disconnected();
  script.Request("denied, too");
  script.Connect();
  script.Acquire("let in");
  script.Answer("acquire", Granted(Terms(0)));
  Check(script);
}

TEST_CASE("vector: a flow that is not permitted") {
  VectorScript script = Begin("a flow that is not permitted", Shop(Fallback::kPass));
  script.Connect();
  script.Acquire("one");
  script.Refuse("acquire", 9, "PERMISSION");
  script.AcquireAll("group", {{FlowId(1001), 1}, {FlowId(1002), 1}});
  script.Refuse("acquire_all", 9, "PERMISSION");
  script.Request("rate");
  script.Refuse("request", 9, "PERMISSION");
  script.Acquire("another", {}, FlowId(1003));
  script.Answer("acquire", Granted(Terms(0)));
  Check(script);
}

// Closed.

TEST_CASE("vector: closed before there is a connection") {
  VectorScript script = Begin("closed before hello", Shop(Fallback::kPass));
  script.Acquire("a", {.wait = 10s});
  script.Request("r");
  script.Connected();
  script.Close();
  script.Acquire("after");
  script.Request("rate after");
  script.Answer("hello", kHello);
  Check(script);
}

TEST_CASE("vector: closed while calls are asked") {
  VectorScript script = Begin("closed while asking", Shop(Fallback::kPass));
  script.Connect();
  script.Acquire("held");
  script.Answer("acquire", Granted(Terms(2)));
  script.Acquire("tries", {.prioritized = true});
  script.Answer("acquire", Blocked("level"));
  script.Answer("rules_list", Rules(1001, 2, true, "flow", Json{{"acquireRefuseStrategy", 2}}));
  script.HasDrawnPause();
  script.Acquire("waits", {.wait = 10s});
  script.AcquireAll("group", {{FlowId(1001), 1}, {FlowId(1002), 1}});
  script.Request("r");
  script.Keep("held");
  script.At(1);
  script.Close();
  script.Answer("acquire", Granted(Terms(2), 102));
  script.Answer("keep", KeptUnder(Terms(2)));
  script.Release("held");
  for (int cancel = 0; cancel < 2; ++cancel) script.Answer("cancel", Json::array({7}));
  script.Answer("release", kReleased);
  Check(script);
}

TEST_CASE("vector: closed, and a release is on its way") {
  VectorScript script = Begin("closed with a release on its way", Shop(Fallback::kPass));
  script.Connect();
  for (const char* call : {"a", "b"}) {
    script.Acquire(call);
    script.Answer("acquire", Granted(Terms(0), call[0] == 'a' ? 101 : 102));
  }
  script.Release("a");
  script.Close();
  script.At(100);
  script.Disconnected();
  script.Release("b", CallOutcome::kFailed);
  script.DialFailed();
  script.At(300);
  script.Connect(2);
  script.Answer("release", kReleased);
  script.Answer("release", kReleased);
  Check(script);
}

}  // namespace
}  // namespace nowcalls::client
