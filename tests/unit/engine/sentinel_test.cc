// Connections that speak Sentinel's protocol, against the whole engine.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hex.h"
#include "core/books.h"
#include "core/rules/rule_set.h"
#include "support/engine_harness.h"
#include "support/golden.h"
#include "support/only_flow.h"
#include "wire/json.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using wire::sentinel::RequestType;
using wire::sentinel::Response;

constexpr int64_t kFlow = 111;
constexpr int64_t kParamFlow = 222;
constexpr double kCount = 5;

std::string Text(const wire::OutputBuffer& out) { return std::string(out.view()); }

std::string Ping(std::string_view name_space, uint32_t xid = 0) {
  wire::OutputBuffer out;
  wire::sentinel::EncodePingRequest(xid, name_space, &out);
  return Text(out);
}

std::string Call(RequestType type, uint32_t xid, int64_t flow = kFlow, int32_t count = 1,
                 bool prioritized = false) {
  wire::OutputBuffer out;
  wire::sentinel::EncodeCallRequest(xid, type, {flow, count, prioritized}, &out);
  return Text(out);
}

std::string OfToken(RequestType type, uint32_t xid, uint64_t token) {
  wire::OutputBuffer out;
  wire::sentinel::EncodeTokenRequest(xid, type, token, &out);
  return Text(out);
}

// "TYPE:XID=STATUS" of each frame, with the number that its data begins with if that is not 0.
// Numbers of tokens are not shown.
std::string Shown(std::string_view bytes) {
  std::string shown;
  Response response;
  while (!bytes.empty()) {
    REQUIRE(wire::sentinel::TakeResponse(&bytes, &response) == wire::sentinel::Answer::kWhole);
    if (!shown.empty()) shown += ' ';
    shown += std::to_string(response.type) + ":" + std::to_string(response.xid) + "=" +
             std::string(TokenStatusName(response.status));
    const bool token = response.type == static_cast<int8_t>(RequestType::kAcquire);
    if (!token && response.count() != 0) shown += "(" + std::to_string(response.count()) + ")";
  }
  return shown;
}

std::vector<core::RuleSet> TwoRules(const std::string& name_space) {
  auto rules = core::ParseRules(testing::RulesJson(
      {{.flow = kFlow, .count = kCount}, {.flow = kParamFlow, .count = kCount}}));
  REQUIRE(rules.ok());
  rules->rules[1].param = core::ParamRule{};
  return {{name_space, *std::move(rules)}};
}

class Sentinel {
 public:
  explicit Sentinel(const std::vector<testing::RuleOptions>& rules = {{.flow = kFlow,
                                                                       .count = kCount}},
                    const Limits& limits = {})
      : h(limits, rules) {}

  // What is answered once all is committed.
  std::string Ask(ConnectionId id, std::string_view bytes) {
    h.Send(id, bytes);
    h.Settle();
    return std::exchange(h.driver().socket(id).written, {});
  }
  std::string ShownAsk(ConnectionId id, std::string_view bytes) { return Shown(Ask(id, bytes)); }
  uint64_t Take(ConnectionId id, int64_t flow = kFlow, int32_t count = 1) {
    const std::string bytes = Ask(id, Call(RequestType::kAcquire, 7, flow, count));
    std::string_view rest = bytes;
    Response response;
    REQUIRE(wire::sentinel::TakeResponse(&rest, &response) == wire::sentinel::Answer::kWhole);
    REQUIRE(response.status == TokenStatus::kOk);
    REQUIRE(response.token_id() != 0);
    return response.token_id();
  }
  int64_t NowCalls(int64_t flow = kFlow) {
    const core::FlowTable& flows = h.core().flows();
    return flows.at(OnlyFlow(flows, flow)).lane.now_calls;
  }
  uint32_t Online(std::string_view name_space) {
    const core::FlowTable& flows = h.core().flows();
    const core::NamespaceSlot slot = flows.FindNamespace(name_space);
    return slot == core::kNoNamespace ? 0 : flows.name_space(slot).sessions_online;
  }

  EngineHarness h;
};

// All of `name`'s bytes in one piece, and byte by byte.
void CheckGolden(const std::string& name, const std::string& request, const std::string& answer) {
  CAPTURE(name);
  for (const size_t piece : {request.size(), size_t{1}}) {
    CAPTURE(piece);
    EngineHarness h(Limits(), {});
    REQUIRE(h.engine().LoadRules(TwoRules("default"), h.now()).ok());
    h.Settle();
    const ConnectionId id = h.Connect();
    for (size_t at = 0; at < request.size(); at += piece) h.Send(id, request.substr(at, piece));
    h.Settle();
    CHECK(ToHex(h.driver().socket(id).written) == ToHex(answer));
    CHECK_FALSE(h.driver().socket(id).closed);
  }
}

TEST_CASE("every golden frame of Sentinel's is answered byte by byte as it should be") {
  const auto frames = testing::LoadGolden(testing::GoldenPath("sentinel_frames.hex"));
  int checked = 0;
  for (const auto& [name, bytes] : frames) {
    const auto answer = frames.find(name + "_answer");
    if (answer == frames.end()) continue;
    CheckGolden(name, bytes, answer->second);
    ++checked;
  }
  CHECK(checked > 50);
}

// The decoder of released clients. What an answer leaves unread is taken for the beginning of the
// next: up to 1.6 the count of a PING is read as one byte, from 1.7 on as four unless one is there.
class ReleasedDecoder {
 public:
  explicit ReleasedDecoder(bool reads_one_byte) : reads_one_byte_(reads_one_byte) {}

  // "XID: REMAINING" of each answer to a FLOW, "PING: COUNT" of each to a PING.
  std::string Decode(std::string_view frames) {
    std::string decoded;
    while (!frames.empty()) {
      const size_t size = LoadBigEndian<uint16_t>(frames.data());
      unread_ += frames.substr(2, size);
      frames.remove_prefix(2 + size);
      ByteReader reader(unread_);
      const auto xid = reader.Read<int32_t>();
      const auto type = reader.Read<int8_t>();
      reader.Read<int8_t>();
      if (type == static_cast<int8_t>(RequestType::kPing)) {
        const bool one = reads_one_byte_ || reader.rest().size() == 1;
        decoded += "PING: " + std::to_string(one ? reader.Read<int8_t>() : reader.Read<int32_t>());
      } else {
        decoded += std::to_string(xid) + ": " + std::to_string(reader.Read<int32_t>());
        reader.Read<int32_t>();
      }
      decoded += reader.ok() ? "; " : " cut off; ";
      unread_ = std::string(reader.rest());
    }
    return decoded;
  }

 private:
  const bool reads_one_byte_;
  std::string unread_;
};

TEST_CASE("a client that reads the count of a PING as one byte reads the FLOW behind it") {
  for (const bool reads_one_byte : {true, false}) {
    CAPTURE(reads_one_byte);
    Sentinel s;
    ReleasedDecoder decoder(reads_one_byte);
    const ConnectionId id = s.h.Connect();
    CHECK(decoder.Decode(s.Ask(id, Ping("app"))) == "PING: 1; ");
    CHECK(decoder.Decode(s.Ask(id, Call(RequestType::kFlow, 8) + Call(RequestType::kFlow, 9))) ==
          "8: 4; 9: 3; ");
  }
}

TEST_CASE("a PING counts at most 127 connections, since released clients read a signed byte") {
  Sentinel s;
  for (int others = 1; others < 130; ++others) {
    s.Ask(s.h.Connect("10.0.0.1:" + std::to_string(others)), Ping("app"));
  }
  CHECK(s.Online("app") == 129);
  CHECK(s.ShownAsk(s.h.Connect("10.0.0.2:1"), Ping("app")) == "0:0=OK(127)");
}

TEST_CASE("an oversized frame is BAD_REQUEST at once, skipped, and the next is answered") {
  for (const size_t size : {size_t{1023}, size_t{1024}, size_t{65'535}}) {
    for (const size_t piece : {size_t{7}, size_t{1000}, size_t{1} << 20}) {
      CAPTURE(size);
      CAPTURE(piece);
      Sentinel s;
      const ConnectionId id = s.h.Connect();
      CHECK(s.ShownAsk(id, Ping("default")) == "0:0=OK(1)");
      s.h.driver().TakeLog();
      std::string bytes;
      AppendBigEndian(&bytes, static_cast<uint16_t>(size));
      // Its head, of xid 6 and type 2; no more is needed to answer it.
      bytes += std::string("\0\0\0\6\2", 5);
      for (const char byte : std::exchange(bytes, "").substr(0, 6)) {
        CHECK(s.Ask(id, std::string(1, byte)).empty());
      }
      CHECK(s.ShownAsk(id, "\2") == "2:6=BAD_REQUEST");
      bytes = std::string(size - 5, '\0') + Call(RequestType::kFlow, 8);
      std::string answers;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        answers += s.Ask(id, bytes.substr(at, piece));
      }
      CHECK(Shown(answers) == "1:8=OK(4)");
      CHECK(s.h.driver().TakeLog().starts_with(
          "warn: connection 127.0.0.1:1000 sent a frame of more than 1022 bytes; it is answered "
          "BAD_REQUEST and skipped\n"));
    }
  }
}

TEST_CASE("a quiet Sentinel connection lives, and one that leaves a frame incomplete does not") {
  Sentinel s;
  const ConnectionId quiet = s.h.Connect("127.0.0.1:1");
  const ConnectionId slow = s.h.Connect("127.0.0.1:2");
  CHECK(s.ShownAsk(quiet, Ping("default")) == "0:0=OK(1)");
  CHECK(s.Ask(slow, Call(RequestType::kFlow, 9).substr(0, 12)).empty());
  s.h.Pass(11'000);
  CHECK_FALSE(s.h.driver().socket(quiet).closed);
  CHECK(s.h.driver().socket(slow).closed);
  CHECK(Shown(s.h.driver().socket(slow).written) == "1:9=BAD_REQUEST");
}

TEST_CASE("PING gives the connection a session of its namespace, shown by its address") {
  Sentinel s;
  const ConnectionId first = s.h.Connect("10.0.0.1:5");
  const ConnectionId second = s.h.Connect("10.0.0.2:6");
  CHECK(s.ShownAsk(first, Ping("app")) == "0:0=OK(1)");
  CHECK(s.ShownAsk(second, Ping("app")) == "0:0=OK(2)");
  CHECK(s.ShownAsk(first, Ping("app", 5)) == "0:5=OK(2)");
  CHECK(s.Online("app") == 2);
  const auto& sessions = s.h.core().books().sessions();
  std::string shown;
  for (const auto& [id, slot] : sessions.by_id()) shown += sessions.at(slot).client_id + " ";
  CHECK(shown == "@10.0.0.1:5 @10.0.0.2:6 ");
  s.h.Disconnect(first);
  CHECK(s.Online("app") == 1);
  CHECK(s.ShownAsk(second, Ping("app")) == "0:0=OK(1)");
}

TEST_CASE("a connection keeps the namespace of its first PING, or of its first token") {
  Sentinel s;
  const ConnectionId pinged = s.h.Connect("10.0.0.1:5");
  CHECK(s.ShownAsk(pinged, Ping("app") + Ping("other") + Ping("app")) ==
        "0:0=OK(1) 0:0=FAIL 0:0=OK(1)");
  CHECK(s.Online("other") == 0);
  const ConnectionId holder = s.h.Connect("10.0.0.2:6");
  const uint64_t token = s.Take(holder);
  CHECK(s.ShownAsk(holder, Ping("app")) == "0:0=FAIL");
  CHECK(s.ShownAsk(holder, Ping("default")) == "0:0=OK(1)");
  CHECK(s.ShownAsk(holder, OfToken(RequestType::kRelease, 1, token)) == "4:1=RELEASE_OK");
}

TEST_CASE("a PING that was refused can be followed by a good one") {
  Sentinel s;
  const ConnectionId id = s.h.Connect();
  CHECK(s.ShownAsk(id, Ping("") + Ping(std::string(129, 'a')) + Ping("app")) ==
        "0:0=FAIL 0:0=FAIL 0:0=OK(1)");
}

TEST_CASE("a FLOW needs no PING and makes no session") {
  Sentinel s;
  const ConnectionId id = s.h.Connect();
  CHECK(s.ShownAsk(id, Call(RequestType::kFlow, 1)) == "1:1=OK(4)");
  CHECK(s.h.core().books().sessions().size() == 0);
  CHECK(s.ShownAsk(id, Ping("app")) == "0:0=OK(1)");
}

TEST_CASE("a FLOW passes as many calls as its rule says, then is blocked, and does so anew later") {
  Sentinel s;
  const ConnectionId id = s.h.Connect();
  CHECK(s.ShownAsk(id, Call(RequestType::kFlow, 1, kFlow, 3) + Call(RequestType::kFlow, 2) +
                           Call(RequestType::kFlow, 3, kFlow, 2) + Call(RequestType::kFlow, 4)) ==
        "1:1=OK(2) 1:2=OK(1) 1:3=BLOCKED 1:4=OK");
  s.h.Pass(1000);
  CHECK(s.ShownAsk(id, Call(RequestType::kFlow, 5)) == "1:5=OK(4)");
}

TEST_CASE("a grant leaves after its commit, a refusal and a FLOW at once") {
  Sentinel s;
  const ConnectionId id = s.h.Connect();
  s.h.Send(id, Call(RequestType::kAcquire, 1, kFlow, 5) + Call(RequestType::kAcquire, 2) +
                   Call(RequestType::kFlow, 3));
  s.h.Turn();
  CHECK(Shown(std::exchange(s.h.driver().socket(id).written, {})) == "3:2=BLOCKED 1:3=OK(4)");
  REQUIRE(s.h.BeginCommit());
  s.h.Turn();
  CHECK(s.h.driver().socket(id).written.empty());
  s.h.FinishCommit();
  s.h.Turn();
  CHECK(Shown(s.h.driver().socket(id).written) == "3:1=OK");
}

TEST_CASE("ends and keeps of tokens leave after the commit, also those that change nothing") {
  Sentinel s;
  const ConnectionId id = s.h.Connect();
  const uint64_t token = s.Take(id);
  s.h.Pass(1);
  s.h.Send(id, OfToken(RequestType::kKeep, 1, token) + OfToken(RequestType::kRelease, 2, token) +
                   OfToken(RequestType::kRelease, 3, token) +
                   OfToken(RequestType::kKeep, 4, token));
  s.h.Turn();
  CHECK(s.h.driver().socket(id).written.empty());
  s.h.Settle();
  CHECK(Shown(s.h.driver().socket(id).written) ==
        "5:1=OK 4:2=RELEASE_OK 4:3=ALREADY_RELEASE 5:4=ALREADY_RELEASE");
  CHECK(s.NowCalls() == 0);
}

TEST_CASE("a Sentinel connection reaches tokens of Sentinel's connections of its namespace alone") {
  Sentinel s;
  const ConnectionId holder = s.h.Connect("10.0.0.1:1");
  const ConnectionId fellow = s.h.Connect("10.0.0.2:2");
  const ConnectionId stranger = s.h.Connect("10.0.0.3:3");
  s.Ask(holder, Ping("app"));
  s.Ask(fellow, Ping("app"));
  s.Ask(stranger, Ping("other"));
  const uint64_t token = s.Take(holder, kFlow, 2);
  CHECK(s.ShownAsk(stranger, OfToken(RequestType::kKeep, 1, token) +
                                 OfToken(RequestType::kRelease, 2, token)) ==
        "5:1=ALREADY_RELEASE 4:2=ALREADY_RELEASE");
  CHECK(s.NowCalls() == 2);
  CHECK(s.ShownAsk(fellow, OfToken(RequestType::kKeep, 1, token) +
                               OfToken(RequestType::kRelease, 2, token)) ==
        "5:1=OK 4:2=RELEASE_OK");
  CHECK(s.NowCalls() == 0);
}

TEST_CASE("Sentinel's frames do not reach tokens of MessagePack-RPC, also after a restart") {
  Sentinel s({{.flow = kFlow, .count = 4}});
  const auto take = [&](const std::optional<std::string_view>& client_id) {
    const ConnectionId rpc = s.h.Connect("10.0.0.2:2");
    s.h.Call(rpc, testing::HelloRequest(1, "default", client_id));
    return s.h.Call(rpc, testing::AcquireRequest(2, kFlow)).acquire().token_id;
  };
  const std::vector<uint64_t> theirs = {take("worker"), take(std::nullopt)};
  const uint64_t own = s.Take(s.h.Connect("10.0.0.1:1"));
  for (const bool restarted : {false, true}) {
    CAPTURE(restarted);
    if (restarted) s.h.Restart();
    const ConnectionId sentinel = s.h.Connect("10.0.0.1:2");
    for (const uint64_t token : theirs) {
      CHECK(s.ShownAsk(sentinel, OfToken(RequestType::kKeep, 1, token) +
                                     OfToken(RequestType::kRelease, 2, token)) ==
            "5:1=ALREADY_RELEASE 4:2=ALREADY_RELEASE");
    }
    CHECK(s.ShownAsk(sentinel, OfToken(RequestType::kKeep, 3, own)) == "5:3=OK");
    CHECK(s.NowCalls() == 3);
  }
}

TEST_CASE("a Sentinel client that comes back from another port releases what it held") {
  Sentinel s;
  const ConnectionId before = s.h.Connect("10.0.0.1:1");
  s.Ask(before, Ping("app"));
  const uint64_t token = s.Take(before);
  s.h.Disconnect(before);
  const ConnectionId after = s.h.Connect("10.0.0.1:2");
  s.Ask(after, Ping("app"));
  CHECK(s.ShownAsk(after, OfToken(RequestType::kRelease, 1, token)) == "4:1=RELEASE_OK");
}

TEST_CASE("Sentinel's tokens survive a restart for the restart grace, and then are reclaimed") {
  Sentinel s;
  const ConnectionId before = s.h.Connect("10.0.0.1:1");
  s.Ask(before, Ping("app"));
  const uint64_t kept = s.Take(before);
  s.Take(before);
  s.h.Restart();
  CHECK(s.NowCalls() == 2);
  const ConnectionId after = s.h.Connect("10.0.0.1:2");
  CHECK(s.ShownAsk(after, Ping("app") + OfToken(RequestType::kRelease, 1, kept)) ==
        "0:0=OK(1) 4:1=RELEASE_OK");
  s.h.Pass(60'000);
  CHECK(s.NowCalls() == 0);
}

TEST_CASE(
    "Sentinel's frames and MessagePack-RPC see the same calls in progress and the same rates") {
  Sentinel s({{.flow = kFlow, .count = 4}});
  const ConnectionId sentinel = s.h.Connect("10.0.0.1:1");
  const ConnectionId rpc = s.h.Connect("10.0.0.2:2");
  s.Take(sentinel, kFlow, 3);
  const auto granted = s.h.Call(rpc, testing::AcquireRequest(1, kFlow)).acquire();
  CHECK(granted.status == TokenStatus::kOk);
  CHECK(granted.now_calls == 4);
  CHECK(s.ShownAsk(sentinel, Call(RequestType::kAcquire, 1)) == "3:1=BLOCKED");
  CHECK(s.h.Call(rpc, testing::AcquireRequest(2, kFlow)).acquire().status == TokenStatus::kBlocked);
  CHECK(s.NowCalls() == 4);
}

TEST_CASE("a prioritized Sentinel acquire waits as long as the rule says, at most the 15 ms") {
  struct Case {
    int64_t rule_ms;
    int64_t limit_ms;
    int64_t waits_ms;
  };
  for (const Case& c : {Case{500, 15, 15}, Case{10, 15, 10}, Case{500, 0, 0}, Case{0, 15, 0}}) {
    CAPTURE(c.rule_ms);
    CAPTURE(c.limit_ms);
    Limits limits;
    limits.sentinel_wait_ms_max = c.limit_ms;
    Sentinel s({{.flow = kFlow, .count = 1, .refuse_strategy = 3, .max_queueing_ms = c.rule_ms}},
               limits);
    const ConnectionId id = s.h.Connect();
    s.Take(id);
    std::string answer = s.ShownAsk(id, Call(RequestType::kAcquire, 9, kFlow, 1, true));
    for (int64_t ms = 0; ms < c.waits_ms; ++ms) {
      CHECK(answer.empty());
      s.h.Pass(1);
      answer = Shown(std::exchange(s.h.driver().socket(id).written, {}));
    }
    CHECK(answer == "3:9=BLOCKED");
  }
}

TEST_CASE("a Sentinel acquire that waits is granted when there is room, by its own xid") {
  Sentinel s({{.flow = kFlow, .count = 1, .refuse_strategy = 3}});
  const ConnectionId id = s.h.Connect();
  const uint64_t token = s.Take(id);
  CHECK(s.ShownAsk(id, Call(RequestType::kAcquire, 77, kFlow, 1, true)).empty());
  CHECK(s.ShownAsk(id, Call(RequestType::kAcquire, 78, kFlow, 1, false)) == "3:78=BLOCKED");
  CHECK(s.ShownAsk(id, OfToken(RequestType::kRelease, 8, token)) == "4:8=RELEASE_OK 3:77=OK");
}

// Released clients take a NOT_AVAILABLE answer to a FLOW for BLOCKED.
TEST_CASE("a server that ends grants nothing, and still takes back and counts rates") {
  Sentinel s({{.flow = kFlow, .count = 1, .refuse_strategy = 3}});
  const ConnectionId id = s.h.Connect();
  const uint64_t token = s.Take(id);
  s.h.Send(id, Call(RequestType::kAcquire, 1, kFlow, 1, true));
  s.h.engine().BeginShutdown(s.h.now());
  CHECK(s.ShownAsk(id, Call(RequestType::kAcquire, 2) + Call(RequestType::kFlow, 3) +
                           OfToken(RequestType::kRelease, 4, token)) ==
        "3:1=NOT_AVAILABLE 3:2=NOT_AVAILABLE 1:3=OK 4:4=RELEASE_OK");
}

TEST_CASE("sessions that do not fit are TOO_MANY_REQUEST, and a FLOW still passes") {
  Limits limits;
  limits.sessions_max = 1;
  Sentinel s({{.flow = kFlow, .count = kCount}}, limits);
  const ConnectionId first = s.h.Connect("10.0.0.1:1");
  const ConnectionId second = s.h.Connect("10.0.0.1:2");
  s.Ask(first, Ping("app"));
  CHECK(s.ShownAsk(second, Ping("app") + Call(RequestType::kAcquire, 1) +
                               OfToken(RequestType::kRelease, 2, 5) +
                               Call(RequestType::kFlow, 3)) ==
        "0:0=TOO_MANY_REQUEST 3:1=TOO_MANY_REQUEST 4:2=TOO_MANY_REQUEST 1:3=OK(4)");
}

TEST_CASE("the requests of a namespace in a second are bounded for Sentinel's clients too") {
  Limits limits;
  limits.namespace_qps_max = 2;
  Sentinel s({{.flow = kFlow, .count = kCount}}, limits);
  const ConnectionId id = s.h.Connect();
  CHECK(s.ShownAsk(id, Call(RequestType::kFlow, 1) + Call(RequestType::kFlow, 2) +
                           Call(RequestType::kFlow, 3)) ==
        "1:1=OK(4) 1:2=OK(3) 1:3=TOO_MANY_REQUEST");
}

TEST_CASE("info tells what speaks Sentinel's protocol, and what it asked") {
  Sentinel s;
  const ConnectionId sentinel = s.h.Connect("10.0.0.1:1");
  s.h.Connect("10.0.0.3:3");
  s.Ask(sentinel, Ping("app") + Call(RequestType::kFlow, 1) + Call(RequestType::kFlow, 2) +
                      Call(static_cast<RequestType>(99), 3) + std::string("\0\1x", 3));
  const ConnectionId rpc = s.h.Connect("10.0.0.2:2");
  const std::string info =
      wire::JsonFromMessagePack(s.h.Call(rpc, testing::PlainRequest(1, wire::Method::kInfo)).result)
          ->dump();
  const auto has = [&](const std::string& part) {
    CAPTURE(part);
    CHECK(info.find(part) != std::string::npos);
  };
  has(R"("connections_by_protocol":{"messagepack_rpc":1,"sentinel":1})");
  has(R"("sentinel_requests":{"ping":1,"flow":2,"param_flow":0,"acquire":0,"release":0,"keep":0,)"
      R"("unknown":1})");
  has(R"("sentinel_malformed":1)");
}

}  // namespace
}  // namespace nowcalls::engine
