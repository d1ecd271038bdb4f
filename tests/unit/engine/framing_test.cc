// Bytes in: split anywhere, incomplete for too long, or not what a client may send.
#include <doctest/doctest.h>

#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;
using MsgIds = std::vector<uint32_t>;

std::string ThreeRequests() {
  return HelloRequest(1, "default", "a") + AcquireRequest(2, 1, 3) + PlainRequest(3, Method::kPing);
}

TEST_CASE("bytes split at every point give the same replies") {
  std::string expected;
  {
    EngineHarness h;
    const ConnectionId c = h.Connect();
    h.Send(c, ThreeRequests());
    h.Settle();
    expected = h.driver().socket(c).written;
    CHECK(h.TakeIds(c) == MsgIds{1, 3, 2});  // The hello and the ping do not wait for the disk.
  }
  const std::string bytes = ThreeRequests();
  for (size_t split = 1; split < bytes.size(); ++split) {
    CAPTURE(split);
    EngineHarness h;
    const ConnectionId c = h.Connect();
    h.Send(c, bytes.substr(0, split));
    h.Send(c, bytes.substr(split));
    h.Settle();
    CHECK((h.driver().socket(c).written == expected));
  }
  EngineHarness h;
  const ConnectionId c = h.Connect();
  for (const char byte : bytes) h.Send(c, {&byte, 1});
  h.Settle();
  CHECK((h.driver().socket(c).written == expected));
}

TEST_CASE("a message that spans turns and commits is one message") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const std::string bytes = AcquireRequest(1, 1) + AcquireRequest(2, 1);
  for (const char byte : bytes) {
    h.Send(c, {&byte, 1});
    h.Settle();
    h.Sleep(1);
  }
  CHECK(h.TakeIds(c) == MsgIds{1, 2});
}

TEST_CASE("a message that is not complete in time closes the connection") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const ConnectionId d = h.Connect("127.0.0.1:2");
  const std::string request = AcquireRequest(1, 1);
  h.Send(c, request.substr(0, 3));
  CHECK(h.engine().NextDeadline() == h.now() + 10'000);
  h.Pass(5000);
  h.Send(c, request.substr(3, 1));  // One more byte does not buy more time.
  h.Pass(4999);
  CHECK_FALSE(h.driver().socket(c).closed);
  h.Pass(1);
  CHECK(h.driver().socket(c).closed);
  CHECK(h.driver().TakeLog() ==
        "warn: connection 127.0.0.1:1000 did not complete a message within 10000 ms; closing it\n");
  CHECK_FALSE(h.driver().socket(d).closed);
  CHECK(h.engine().NextDeadline() > h.now());
  h.Disconnect(c);
}

TEST_CASE("each message has the whole time, and a complete one has none") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const std::string ping = PlainRequest(1, Method::kPing);
  h.Send(c, ping.substr(0, 2));
  h.Pass(9000);
  h.Send(c, ping.substr(2) + ping.substr(0, 2));
  h.Pass(9000);
  CHECK_FALSE(h.driver().socket(c).closed);
  h.Send(c, ping.substr(2));
  h.Pass(100'000);
  CHECK_FALSE(h.driver().socket(c).closed);
  CHECK(h.TakeIds(c) == MsgIds{1, 1});
  CHECK(h.engine().NextDeadline() == h.core().NextMark());
}

TEST_CASE("a disconnect ends the wait for the rest of a message") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, "\x94");
  h.Disconnect(c);
  CHECK(h.engine().NextDeadline() == h.core().NextMark());
  h.Pass(20'000);
  CHECK(h.driver().TakeLog() == "");
}

TEST_CASE("a client whose reading the server paused has no incomplete message") {
  Limits limits;
  limits.requests_in_flight_max = 2;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  const std::string last = AcquireRequest(5, 1);
  h.Send(c, AcquireRequest(1, 1) + AcquireRequest(2, 1) + AcquireRequest(3, 1) + last.substr(0, 4));
  REQUIRE_FALSE(h.driver().socket(c).reading);
  REQUIRE(h.BeginCommit());
  for (int i = 0; i < 30; ++i) {
    h.Sleep(1000);
    h.Turn();
  }
  CHECK_FALSE(h.driver().socket(c).closed);
  h.FinishCommit();
  h.Settle();
  CHECK(h.driver().socket(c).reading);
  h.Pass(9999);  // Now its time begins.
  CHECK_FALSE(h.driver().socket(c).closed);
  h.Send(c, last.substr(4));
  h.Settle();
  CHECK(h.TakeIds(c) == MsgIds{1, 2, 3, 5});
}

struct Refused {
  std::string bytes;
  std::string log;
};

void CheckRefused(const Refused& refused) {
  CAPTURE(refused.log);
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, PlainRequest(1, Method::kPing) + refused.bytes);
  h.Turn();
  CHECK(h.driver().socket(c).closed);
  CHECK(h.driver().socket(c).flushed);
  CHECK(h.TakeIds(c) == MsgIds{1});  // What came before is answered.
  CHECK(h.driver().TakeLog() ==
        "warn: connection 127.0.0.1:1000 " + refused.log + "; closing it\n");
  h.Send(c, PlainRequest(2, Method::kPing));
  h.Settle();
  CHECK(h.TakeIds(c).empty());
  h.Disconnect(c);
}

TEST_CASE("a byte that begins no message closes the connection with a log line") {
  CheckRefused({"GET / HTTP/1.1\r\n",
                "speaks neither MessagePack-RPC nor Sentinel's frames: it begins with byte 0x47"});
  CheckRefused(
      {"\xff", "speaks neither MessagePack-RPC nor Sentinel's frames: it begins with byte 0xff"});
  CheckRefused(
      {"\x04", "speaks neither MessagePack-RPC nor Sentinel's frames: it begins with byte 0x04"});
  CheckRefused(
      {"\x95", "speaks neither MessagePack-RPC nor Sentinel's frames: it begins with byte 0x95"});
}

TEST_CASE("messages beyond the limits close the connection with a log line") {
  const std::string prefix = "sent a message that is refused: ";
  const std::string head = "\x94\x01\x02\xa4ping";
  CheckRefused({head.substr(0, 2) + "\xdd\xff\xff\xff\xff",
                prefix + "array of 4294967295 elements exceeds 1024"});
  CheckRefused({head.substr(0, 2) + "\xdf\xff\xff\xff\xff",
                prefix + "map of 4294967295 pairs exceeds 1024"});
  CheckRefused(
      {head.substr(0, 2) + "\xc6\xff\xff\xff\xff", prefix + "message exceeds 65536 bytes"});
  CheckRefused(
      {head.substr(0, 2) + "\xc7\x01\x05", prefix + "extension type (byte 0xc7) is not allowed"});
  CheckRefused({head.substr(0, 2) + "\xc1", prefix + "byte 0xc1 begins no MessagePack value"});
  CheckRefused({"\x94" + std::string(100'000, '\x91'),
                prefix + "arrays and maps are nested more than 8 deep"});
}

TEST_CASE("what is no request closes the connection with a log line") {
  const auto refused = [](const std::string& bytes) {
    EngineHarness h;
    const ConnectionId c = h.Connect();
    h.Send(c, bytes);
    h.Turn();
    CHECK(h.driver().socket(c).closed);
    h.Disconnect(c);
    return h.driver().TakeLog();
  };
  const std::string start = "warn: connection 127.0.0.1:1000 sent what is not a request: ";
  // A response, a negative msgid, a method that is no string, params that are no array.
  CHECK(refused("\x94\x01\x05\xc0\xc0").starts_with(start));
  CHECK(refused(std::string("\x94\x00\xff\xa4ping\x90", 9)).starts_with(start + "msgid "));
  CHECK(refused(std::string("\x94\x00\x05\x07\x90", 5)).starts_with(start + "method "));
  CHECK(refused(std::string("\x94\x00\x05\xa4ping\xc0", 9)).starts_with(start + "params "));
}

TEST_CASE("nothing is done of what a connection sends behind its error") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(1, 1) + "\xff" + AcquireRequest(2, 1));
  CHECK(h.core().books().tokens().size() == 1);
  h.Send(c, AcquireRequest(3, 1));
  CHECK(h.core().books().tokens().size() == 1);
  CHECK_FALSE(h.driver().socket(c).closed);
  h.Settle();
  CHECK(h.TakeIds(c) == std::vector<uint32_t>{1});
  CHECK(h.driver().socket(c).closed);
  CHECK(h.driver().socket(c).flushed);
  h.Disconnect(c);
  h.Settle();
  h.Pass(2000);
  CHECK(h.core().books().tokens().size() == 0);  // Its session went with it.
}

TEST_CASE("a request that is refused for its form is answered when its msgid can be read") {
  const auto answer = [](const std::string& bytes) {
    EngineHarness h;
    const ConnectionId c = h.Connect();
    h.Send(c, AcquireRequest(1, 1) + bytes);
    h.Settle();
    CHECK(h.driver().socket(c).closed);
    const auto replies = h.TakeReplies(c);
    REQUIRE_FALSE(replies.empty());
    std::string text;
    for (const auto& reply : replies) {
      if (reply.msgid != 1) text += std::to_string(reply.msgid) + " " + reply.ErrorText();
    }
    return text;
  };
  CHECK(answer(std::string("\x94\x00\x07\xa4ping\xc0", 9)) ==
        "7 MALFORMED: the connection sent what is not a request: params must be an array, got nil");
  CHECK(answer(std::string("\x94\x00\x08\xa4ping\xdd\xff\xff\xff\xff", 13)) ==
        "8 MALFORMED: the connection sent a message that is refused: array of 4294967295 elements "
        "exceeds 1024");
  CHECK(answer(std::string("\x93\x02\x09\xa4ping\xc0", 9)).empty());
  CHECK(answer("\x94\xc1").empty());
}

TEST_CASE("a request that never ends is answered before it is given up") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, std::string("\x94\x00\x07\xa4pi", 6));
  h.Pass(Limits().message_incomplete_ms);
  const auto replies = h.TakeReplies(c);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].msgid == 7);
  CHECK(replies[0].ErrorText() ==
        "MALFORMED: the connection did not complete a message within 10000 ms");
  CHECK(h.driver().socket(c).closed);
}

TEST_CASE("a client that has said its last word gets all its answers, then the end") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(1, 1) + PlainRequest(2, wire::Method::kPing) + "\x94");
  h.engine().OnEndOfInput(c, h.now());
  h.Turn();
  CHECK(h.TakeIds(c) == std::vector<uint32_t>{2});
  CHECK_FALSE(h.driver().socket(c).closed);
  REQUIRE(h.BeginCommit());
  h.engine().OnEndOfInput(c, h.now());  // Twice is once.
  CHECK_FALSE(h.driver().socket(c).closed);
  h.FinishCommit();
  CHECK(h.TakeIds(c) == std::vector<uint32_t>{1});
  CHECK(h.driver().socket(c).closed);
  CHECK(h.driver().socket(c).flushed);
  CHECK(h.driver().TakeLog().empty());
  h.Disconnect(c);

  const ConnectionId idle = h.Connect();
  h.engine().OnEndOfInput(idle, h.now());
  CHECK(h.driver().socket(idle).closed);
}

TEST_CASE("a client may go away while its last answers wait") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(1, 1));
  h.engine().OnEndOfInput(c, h.now());
  REQUIRE(h.BeginCommit());
  h.Disconnect(c);
  h.FinishCommit();
  h.Settle();
  h.Pass(2000);
  CHECK(h.core().books().tokens().size() == 0);
}

TEST_CASE("a notification of release or keep is executed, any other is ignored, none is answered") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const uint64_t released = h.Take(c);
  const uint64_t stays = h.Take(c);
  // A notification is a request without its msgid.
  const auto notify = [](std::string request) {
    request[0] = '\x93';
    request[1] = '\x02';
    const size_t method =
        request.find('\xa4') != std::string::npos ? request.find('\xa4') : request.find('\xa7');
    return request.erase(2, method - 2);
  };
  h.Send(c, notify(TokenRequest(1, Method::kRelease, released)));
  CHECK(h.core().books().tokens().size() == 1);
  h.Send(c, notify(AcquireRequest(1, 1)));
  CHECK(h.core().books().tokens().size() == 1);
  h.Send(c, notify(PlainRequest(1, Method::kPing)));
  h.Send(c, notify(TokenRequest(1, Method::kRelease, stays)).substr(0, 2) + "\xa7release\x90");
  h.Sleep(100);
  const int64_t before_ms = testing::ReadLedger(&h.store()).tokens.back().key.deadline_ms;
  h.Send(c, notify(TokenRequest(1, Method::kKeep, stays)));
  h.Settle();
  CHECK(h.TakeIds(c).empty());
  CHECK_FALSE(h.driver().socket(c).closed);
  const auto tokens = testing::ReadLedger(&h.store()).tokens;
  REQUIRE(tokens.size() == 1);
  CHECK(tokens[0].key.id.value == stays);
  CHECK(tokens[0].key.deadline_ms == before_ms + 100);
}

}  // namespace
}  // namespace nowcalls::engine
