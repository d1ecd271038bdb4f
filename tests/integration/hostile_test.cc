// What hostile and broken peers send: it costs no more than the limits allow, and an honest client
// beside them notices nothing.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "integration/calls.h"
#include "integration/honest_client.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kHonestFlow = 1;
constexpr int64_t kHostileFlow = 2;
constexpr uint64_t kMebibyte = 1024 * 1024;
constexpr uint64_t kGrowthMax = GrowthMax(48 * kMebibyte);

// A literal with all its bytes, NULs too.
template <size_t size>
std::string Bytes(const char (&literal)[size]) {
  return {literal, size - 1};
}

// [0, 1, "ping", as far as the parameters, which a test adds.
const std::string kOpenRequest = Bytes("\x94\x00\x01\xa4ping");

// A server, an honest client on it, and at the end the proof that both are well.
class Hostile {
 public:
  Hostile() : Hostile(std::vector<std::string>{}) {}
  explicit Hostile(std::vector<std::string> arguments, int64_t incomplete_ms = 300)
      : server({RuleJson(kHonestFlow, 1), RuleJson(kHostileFlow, 100'000)},
               {WithTimeout(std::move(arguments), incomplete_ms), {}}),
        honest(server.address(), kHonestFlow) {
    REQUIRE(honest.MakesProgress());
    resident_before = ResidentBytes(server.server().process().pid());
  }

  void CheckWell() {
    CHECK(honest.MakesProgress());
    CHECK(honest.Finish() == "");
    REQUIRE(server.server().Running());
    const uint64_t resident = ResidentBytes(server.server().process().pid());
    CAPTURE(resident);
    CHECK(resident < resident_before + kGrowthMax);
    RpcClient client = server.Connect();
    CHECK(client.Call("ping").ok());
    CHECK(NowCalls(&client, kHonestFlow) == 0);
  }

  TestServer server;
  HonestClient honest;
  uint64_t resident_before = 0;

 private:
  static std::vector<std::string> WithTimeout(std::vector<std::string> arguments,
                                              int64_t incomplete_ms) {
    arguments.insert(arguments.end(), {"--message-incomplete-ms", std::to_string(incomplete_ms)});
    return arguments;
  }
};

TEST_CASE_FIXTURE(Hostile, "random bytes end their connection and nothing else") {
  Prng prng(20'201'120);
  for (int i = 0; i < 150; ++i) {
    std::string bytes(1 + prng.Below(4096), '\0');
    for (char& byte : bytes) byte = static_cast<char>(prng.Next());
    if (i % 2 == 0) bytes[0] = '\x94';  // Past the first byte, as half a request.
    RpcClient client = server.Connect();
    client.SendRaw(bytes);
    CHECK(client.SeesEof());
  }
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "a length that the bytes do not pay for ends the connection at once") {
  const std::string bodies[] = {
      Bytes("\xdd\xff\xff\xff\xff"),      // array 32
      Bytes("\xdf\xff\xff\xff\xff"),      // map 32
      Bytes("\xdb\xff\xff\xff\xff"),      // str 32
      Bytes("\xc6\xff\xff\xff\xff"),      // bin 32
      Bytes("\xc9\xff\xff\xff\xff\x01"),  // ext 32
      Bytes("\xdc\xff\xff"),              // array 16
      Bytes("\xde\xff\xff"),              // map 16
      Bytes("\xd4\x01\x00"),              // fixext 1
      Bytes("\xc1"),                      // never used
      Bytes("\x91\xdd\x7f\xff\xff\xff"),  // within another array
      Bytes("\x91\x81\xa1k\xdb\x7f\xff\xff\xff"),
  };
  for (const auto& body : bodies) {
    RpcClient client = server.Connect();
    CHECK(client.SendRaw(kOpenRequest + body));
    CHECK(client.SeesEof());
  }
  for (const auto& body : bodies) {  // As the first bytes of all.
    RpcClient client = server.Connect();
    client.SendRaw(body);
    CHECK(client.SeesEof());
  }
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "100,000 nested arrays end the connection") {
  for (const auto& start : {kOpenRequest, std::string()}) {
    for (const char* open : {"\x91", "\x81\xa1k", "\xdd\x00\x00\x00\x01"}) {
      std::string bytes = start;
      for (int i = 0; i < 100'000; ++i) bytes += open;
      RpcClient client = server.Connect();
      client.SendRaw(bytes);
      CHECK(client.SeesEof());
    }
  }
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile,
                  "half a message and then silence is closed after its time, with a reason") {
  RpcClient client = server.Connect("half");
  client.SendRaw(EncodeRequest(7, "acquire", {kHostileFlow, 1}));
  CHECK(client.Receive().ok());
  const std::string request = EncodeRequest(8, "acquire", {kHostileFlow, 1});
  client.SendRaw(request.substr(0, request.size() / 2));
  CHECK(client.SeesEof());
  CHECK(PollUntil(kPatienceMs, [&] {
    return server.server().log().find("did not complete a message") != std::string::npos;
  }));
  CheckWell();
}

// A server that lets peers take their time.
class Unhurried : public Hostile {
 public:
  Unhurried() : Hostile({}, kPatienceMs) {}
};

TEST_CASE_FIXTURE(Unhurried, "a message that arrives byte by byte is answered") {
  RpcClient client = server.Connect("slow");
  for (const char byte : EncodeRequest(7, "acquire", {kHostileFlow, 3})) {
    CHECK(client.SendRaw({&byte, 1}));
  }
  const Reply reply = client.Receive();
  REQUIRE(reply.ok());
  CHECK(reply.msgid == 7);
  CHECK(reply.result.at(0) == kStatusOk);
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "a message above 64 KiB ends the connection, one below does not") {
  const auto message = [](size_t padding) {
    Json rules = Json::array({RuleJson(5, 1)});
    return EncodeRequest(1, "rules_load", {"padded", rules.dump() + std::string(padding, ' ')});
  };
  const size_t overhead = message(30'000).size() - 30'000;
  RpcClient fits = server.Connect();
  fits.SendRaw(message(65'536 - overhead));
  CHECK(fits.Receive().ok());
  RpcClient exceeds = server.Connect();
  exceeds.SendRaw(message(65'537 - overhead));
  CHECK(exceeds.SeesEof());
  RpcClient endless = server.Connect();
  const std::string block(65'536, ' ');
  endless.SendRaw(Bytes("\x94\x00\x01\xaarules_load\x92\xa1n\xdb\x40\x00\x00\x00"));
  while (endless.SendRaw(block, 0)) continue;
  CHECK(endless.SeesEof());
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "what is a message but no request ends the connection") {
  const std::string messages[] = {
      Bytes("\x94\x01\x01\xc0\xc0"),       // a response
      Bytes("\x94\x02\x01\xa4ping\x90"),   // type 2 with four elements
      Bytes("\x93\x00\xa4ping\x90"),       // type 0 with three elements
      Bytes("\x94\x00\xff\xa4ping\x90"),   // msgid -1
      Bytes("\x94\x00\xa1x\xa4ping\x90"),  // msgid of another type
      Bytes("\x94\x00\xcf\x00\x00\x00\x01\x00\x00\x00\x00\xa4ping\x90"),  // msgid 2^32
      Bytes("\x94\x00\x01\xa4ping\xa1x"),  // parameters of another type
      Bytes("\x94\x00\x01\x07\x90"),       // method of another type
      Bytes("\x94\xc0\x01\xa4ping\x90"),   // type nil
      Bytes("\x94\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00\x01\xa4ping\x90"),  // type NaN
  };
  for (const auto& message : messages) {
    RpcClient client = server.Connect();
    CHECK(client.SendRaw(message));
    CHECK(client.SeesEof());
  }
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "numbers that count nothing are refused, and the connection goes on") {
  const std::string acquire = Bytes(
      "\x94\x00\x01\xa7"
      "acquire\x92\x02");
  const std::string no_integers[] = {
      Bytes("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),  // NaN
      Bytes("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"),  // infinity
      Bytes("\xca\x3f\x80\x00\x00"),                  // 1.0
      Bytes("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),  // 2^64-1
      Bytes("\xc2"),
      Bytes("\xc4\x01\x01"),
      Bytes("\x91\x01"),
      Bytes("\x80"),
  };
  const std::string no_counts[] = {
      Bytes("\x00"), Bytes("\xff"), Bytes("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"),
      Bytes("\xce\x80\x00\x00\x00"),  // 2^31
  };
  RpcClient client = server.Connect("counter");
  for (const std::string& count : no_integers) {
    REQUIRE(client.SendRaw(acquire + count));
    const Reply reply = client.Receive();
    CHECK(reply.error_code == kErrorBadParams);
    CHECK(reply.error_message.starts_with("acquire: count "));
  }
  for (const std::string& count : no_counts) {
    REQUIRE(client.SendRaw(acquire + count));
    const Reply reply = client.Receive();
    REQUIRE(reply.ok());
    CHECK(reply.result.at(0) == kStatusBadRequest);
  }
  CHECK(NowCalls(&client, kHostileFlow) == 0);
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "stray bytes behind a good request are judged by themselves") {
  RpcClient client = server.Connect();
  client.SendRaw(EncodeRequest(3, "ping", Json::array()) + Bytes("\xc1\xc1\xc1"));
  const Reply reply = client.Receive();
  CHECK(reply.ok());
  CHECK(reply.msgid == 3);
  CHECK(client.SeesEof());
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "requests with one msgid are all answered") {
  RpcClient client = server.Connect("same");
  const std::string request = EncodeRequest(9, "acquire", {kHostileFlow, 1});
  client.SendRaw(request + request + request);
  std::set<uint64_t> tokens;
  for (int i = 0; i < 3; ++i) {
    const Reply reply = client.Receive();
    REQUIRE(reply.ok());
    CHECK(reply.msgid == 9);
    tokens.insert(reply.result.at(1).get<uint64_t>());
  }
  CHECK(tokens.size() == 3);
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile,
                  "a notification is never answered; only release and keep mean something") {
  RpcClient client = server.Connect("notifier");
  const Grant grant = Acquire(&client, kHostileFlow, 5);
  client.SendNotification("acquire", {kHostileFlow, 1});
  client.SendNotification("nonsense", {1, 2, 3});
  client.SendNotification("release", Json::array({"x"}));
  client.SendNotification("hello", {1, "default", "other"});
  client.SendNotification("rules_load", {"default", Json::array()});
  const uint32_t marker = client.Send("ping");
  const Reply first = client.Receive();
  CHECK(first.msgid == marker);
  CHECK(NowCalls(&client, kHostileFlow) == 5);
  client.SendNotification("release", Json::array({grant.token_id}));
  CHECK(NowCalls(&client, kHostileFlow) == 0);
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile,
                  "far more requests in flight than the limit are all answered in the end") {
  constexpr size_t kRequests = 30'000;
  RpcClient client = server.Connect("eager");
  const std::string request = EncodeRequest(1, "acquire", {kHostileFlow, 1});
  std::string bytes;
  for (size_t i = 0; i < kRequests; ++i) bytes += request;
  CHECK(client.SendRaw(bytes));
  std::set<uint64_t> fences;
  for (size_t i = 0; i < kRequests; ++i) {
    const Reply reply = client.Receive();
    REQUIRE(reply.ok());
    REQUIRE(reply.result.at(0) == kStatusOk);
    fences.insert(reply.result.at(2).get<uint64_t>());
  }
  CHECK(fences.size() == kRequests);
  CheckWell();
}

TEST_CASE("a client that never reads its replies is closed, and its tokens are reclaimed") {
  Hostile hostile({"--output-bytes-max", "65536"});
  RpcClient setup = hostile.server.Connect();
  LoadRules(&setup, {RuleJson(kHonestFlow, 1),
                     RuleJson(kHostileFlow, 100'000, {{"clientOfflineTime", 1}})});
  RpcClient client = hostile.server.Connect("deaf");
  Acquire(&client, kHostileFlow, 5);
  const std::string request = EncodeRequest(1, "info", Json::array());
  std::string bytes;
  while (bytes.size() < 32'768) bytes += request;
  // The sockets' own buffers take some megabytes before the server notices.
  size_t sent = 0;
  while (sent < 256 * kMebibyte && client.SendRaw(bytes, 2'000)) sent += bytes.size();
  CHECK(sent < 256 * kMebibyte);
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&setup, kHostileFlow) == 0; }));
  CHECK(hostile.server.server().LogHas("does not read its replies"));
  hostile.CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "two thousand idle sockets cost little and keep nobody out") {
  constexpr size_t kSockets = 2'000;
  AllowManyFiles(3'000);
  std::vector<RpcClient> idle;
  for (size_t i = 0; i < kSockets; ++i) {
    idle.push_back(server.Connect());
    REQUIRE(idle.back().connected());
  }
  RpcClient client = server.Connect();
  REQUIRE(PollUntil(kPatienceMs, [&] {
    return ResultOf(&client, "info").at("counts").at("connections") >= kSockets;
  }));
  CHECK(idle.front().Call("ping").ok());
  CHECK(idle.back().Call("ping").ok());
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "two thousand sockets with half a message each are all closed in time") {
  constexpr size_t kSockets = 2'000;
  AllowManyFiles(3'000);
  const std::string request = EncodeRequest(8, "acquire", {kHostileFlow, 1});
  std::vector<RpcClient> sockets;
  for (size_t i = 0; i < kSockets; ++i) {
    sockets.push_back(server.Connect());
    sockets.back().SendRaw(request.substr(0, 1 + i % (request.size() - 1)));
  }
  size_t closed = 0;
  for (auto& socket : sockets) closed += socket.SeesEof() ? 1 : 0;
  CHECK(closed == kSockets);
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "floods of notifications and pings leave room for others") {
  const std::string messages[] = {Bytes("\x93\x02\xa0\x90"),
                                  EncodeRequest(1, "ping", Json::array()),
                                  EncodeRequest(1, "acquire", {kHostileFlow + 1, 1})};
  std::vector<RpcClient> flooders;
  for (int i = 0; i < 60; ++i) {
    const std::string& message = messages[i % 3];
    std::string flood;
    while (flood.size() < kMebibyte) flood += message;
    flooders.push_back(server.Connect());
    flooders.back().SendRaw(flood, 0);  // As much as the sockets take.
  }
  RpcClient client = server.Connect("modest");
  for (int i = 0; i < 20; ++i) {
    const Grant grant = Acquire(&client, kHostileFlow);
    CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
  }
  CheckWell();
}

TEST_CASE("input that is never completed is bounded over all connections") {
  AllowManyFiles(3'000);
  TestServer server({RuleJson(kHonestFlow, 1)},
                    {{"--input-total-bytes-max", std::to_string(4 * kMebibyte)}, {}});
  HonestClient honest(server.address(), kHonestFlow);
  const uint64_t resident_before = ResidentBytes(server.server().process().pid());
  const std::string half = Bytes("\x94\x00\x01\xa4ping\x91\xda\xf0\x00") + std::string(60'000, 'x');
  constexpr size_t kSockets = 1'000;  // 60 MB.
  std::vector<RpcClient> sockets;
  for (size_t i = 0; i < kSockets; ++i) {
    sockets.push_back(server.Connect());
    sockets.back().SendRaw(half);
  }
  RpcClient client = server.Connect();
  REQUIRE(PollUntil(kPatienceMs, [&] {
    return ResultOf(&client, "info").at("counts").at("connections") < kSockets / 10;
  }));
  CHECK(server.server().LogHas("that are not handled yet"));
  CHECK(ResidentBytes(server.server().process().pid()) < resident_before + kGrowthMax);
  CHECK(honest.MakesProgress());
  CHECK(honest.Finish() == "");
}

TEST_CASE("the beginning of a message does not keep the memory of a longer one before it") {
  AllowManyFiles(5'000);
  TestServer server({RuleJson(kHonestFlow, 1)});
  HonestClient honest(server.address(), kHonestFlow);
  const uint64_t resident_before = ResidentBytes(server.server().process().pid());
  const std::string whole = EncodeRequest(1, "ping", Json::array({std::string(60'000, 'x')}));
  constexpr size_t kSockets = 2'000;  // 120 MB.
  std::vector<RpcClient> sockets;
  for (size_t i = 0; i < kSockets; ++i) {
    sockets.push_back(server.Connect());
    sockets.back().SendRaw(whole + '\x94');
    REQUIRE(sockets.back().Receive().answered());
  }
  CHECK(ResidentBytes(server.server().process().pid()) < resident_before + kGrowthMax);
  CHECK(honest.MakesProgress());
  CHECK(honest.Finish() == "");
}

TEST_CASE("connections beyond the limit are closed, and there is room again when one leaves") {
  TestServer server({RuleJson(1, 10)}, {{"--connections-max", "3"}, {}});
  std::vector<RpcClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.Connect());
    CHECK(clients.back().Call("ping").ok());
  }
  RpcClient late = server.Connect();
  CHECK(late.SeesEof());
  CHECK(clients[0].Call("ping").ok());
  clients.pop_back();
  CHECK(PollUntil(kPatienceMs, [&] { return server.Connect().Call("ping").ok(); }));
}

TEST_CASE("who comes from elsewhere cannot take all connections there are") {
  TestServer server({RuleJson(1, 10)}, {{"--connections-max", "20"}, {}});
  std::vector<RpcClient> others;
  for (int i = 0; i < 18; ++i) {
    others.emplace_back(server.address(), "127.0.0.2");
    REQUIRE(others.back().Call("ping").ok());
  }
  CHECK(RpcClient(server.address(), "127.0.0.2").SeesEof());
  RpcClient first = server.Connect();
  CHECK(first.Call("ping").ok());
  RpcClient second = server.Connect();
  CHECK(second.Call("ping").ok());
  CHECK(server.Connect().SeesEof());
  CHECK(server.server().LogHas("connections-max is 20, of which 2 are for this machine"));
}

TEST_CASE("tokens beyond the server's limit are refused by name") {
  TestServer server({RuleJson(1, 1'000)}, {{"--tokens-max", "5"}, {}});
  RpcClient client = server.Connect("alice");
  std::vector<Grant> grants;
  grants.reserve(5);
  for (int i = 0; i < 5; ++i) grants.push_back(Acquire(&client, 1));
  const Grant refused = Acquire(&client, 1);
  CHECK(refused.status == kStatusTooManyRequest);
  CHECK(refused.refused_by == "token_limit");
  CHECK(Release(&client, grants[0].token_id) == kStatusReleaseOk);
  CHECK(Acquire(&client, 1).status == kStatusOk);
}

TEST_CASE_FIXTURE(Hostile, "clients that come and go leave nothing behind") {
  for (int i = 0; i < 1'500; ++i) {
    RpcClient client(server.address());
    client.Send("hello", {1, "default", "visitor-" + std::to_string(i)});
    if (i % 3 == 0) REQUIRE(client.Receive().ok());
  }
  RpcClient client = server.Connect();
  CHECK(PollUntil(kPatienceMs, [&] {
    return ResultOf(&client, "info").at("counts").at("sessions") == 1;  // The honest one.
  }));
  CheckWell();
}

TEST_CASE_FIXTURE(Hostile, "listings that are begun and left are forgotten, the newest last") {
  RpcClient client = server.Connect("lister");
  for (int i = 0; i < 3; ++i) Acquire(&client, kHostileFlow);
  std::vector<Json> cursors;
  for (int i = 0; i < 200; ++i) {
    const Json page = ResultOf(&client, "tokens", {{{"flow_id", kHostileFlow}}, 1});
    REQUIRE(page.at(0).size() == 1);
    cursors.push_back(page.at(1));
  }
  const Json filter = {{"flow_id", kHostileFlow}};
  CHECK(ResultOf(&client, "tokens", {filter, 1, cursors.back()}).at(0).size() == 1);
  const Reply forgotten = ErrorOf(&client, "tokens", {filter, 1, cursors.front()});
  CHECK(forgotten.error_message.find("cursor") != std::string::npos);
  CheckWell();
}

}  // namespace
}  // namespace nowcalls::testing
