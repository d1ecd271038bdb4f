// What src/wire/PROTOCOL.md says about the edges of types, lengths and namespaces.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr size_t kStrBytesMax = 4096;
constexpr int64_t kIntMin = INT64_MIN;
constexpr uint64_t kPastInt = uint64_t{1} << 63;

TEST_CASE("a method name beyond 4096 bytes ends the connection, one of 4096 does not") {
  TestServer server;
  RpcClient client = server.Connect();
  const Reply unknown = client.Call(std::string(kStrBytesMax, 'm'));
  CHECK(unknown.error_code == kErrorUnknownMethod);
  client.Send(std::string(kStrBytesMax + 1, 'm'));
  CHECK(client.SeesEof());
}

TEST_CASE("a parameter beyond 4096 bytes is refused by name, and the connection goes on") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  const std::string too_long(kStrBytesMax + 1, 'x');
  const Reply name_space = ErrorOf(&client, "hello", {1, too_long});
  CHECK(name_space.error_code == kErrorBadParams);
  CHECK(name_space.error_message == "hello: namespace of 4097 bytes exceeds 4096");
  const Reply key = ErrorOf(&client, "acquire", {1, 1, {{too_long, 1}}});
  CHECK(key.error_code == kErrorBadParams);
  CHECK(Contains(key.error_message, "is not known"));
  const Reply filter = ErrorOf(&client, "tokens", Json::array({{{"client_id", too_long}}}));
  CHECK(filter.error_code == kErrorBadParams);
  CHECK(Acquire(&client, 1).status == kStatusOk);
}

TEST_CASE("the rules of rules_load may be longer than 4096 bytes") {
  TestServer server;
  RpcClient client = server.Connect();
  const Json rules = Json::array({RuleJson(1, 5)});
  const std::string padded = std::string(2 * kStrBytesMax, ' ') + rules.dump();
  CHECK(ResultOf(&client, "rules_load", {"default", padded}) == Json::array({1}));
}

TEST_CASE("a parameter too many is refused even if it is nil") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  for (const char* method : {"ping", "info"}) {
    CAPTURE(method);
    const Reply reply = ErrorOf(&client, method, Json::array({nullptr}));
    CHECK(reply.error_code == kErrorBadParams);
    CHECK(reply.error_message == std::string(method) + " takes at most 0 parameters, got 1");
  }
  CHECK(ErrorOf(&client, "release", {5, nullptr, nullptr}).error_code == kErrorBadParams);
  // A known one may be nil.
  CHECK(ResultOf(&client, "acquire", {1, 1, nullptr}).at(0) == kStatusOk);
  CHECK(ResultOf(&client, "release", {5, nullptr}).at(0) == kStatusAlreadyRelease);
}

TEST_CASE("a flow_id or count that is no int is an error, one out of range a status") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  CHECK(Acquire(&client, 0).status == kStatusBadRequest);
  CHECK(Acquire(&client, kIntMin).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, 0).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, int64_t{INT32_MAX} + 1).status == kStatusBadRequest);
  CHECK(Acquire(&client, INT64_MAX).status == kStatusNoRuleExists);
  const Reply flow = ErrorOf(&client, "acquire", {kPastInt, 1});
  CHECK(flow.error_code == kErrorBadParams);
  CHECK(flow.error_message == "acquire: flow_id must fit a signed 64-bit integer");
  CHECK(ErrorOf(&client, "acquire", {1, kPastInt}).error_code == kErrorBadParams);
  CHECK(ErrorOf(&client, "flow", Json::array({kPastInt})).error_code == kErrorBadParams);
}

// A client that has sent all it will send, and has not read anything yet.
class HalfClosed {
 public:
  HalfClosed(const std::string& address, const std::string& requests) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int small = 4096;  // What is on its way to it is little.
    REQUIRE(setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    REQUIRE(connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0);
    const auto size = static_cast<ssize_t>(requests.size());
    REQUIRE(send(fd_, requests.data(), requests.size(), 0) == size);
    REQUIRE(shutdown(fd_, SHUT_WR) == 0);
  }
  ~HalfClosed() { close(fd_); }
  HalfClosed(const HalfClosed&) = delete;
  HalfClosed& operator=(const HalfClosed&) = delete;

  // How many bytes come until the end of the stream.
  size_t BytesToEnd() const {
    size_t bytes = 0;
    char piece[64 * 1024];
    for (ssize_t size = 0; (size = recv(fd_, piece, sizeof(piece), 0)) > 0;) {
      bytes += static_cast<size_t>(size);
    }
    return bytes;
  }

 private:
  int fd_ = -1;
};

TEST_CASE("who sends no more gets all answers, also who is slow to read them") {
  constexpr int kNamespaces = 16;
  constexpr int kRules = 50;
  constexpr size_t kPagesMax = 8;  // Of one number of them the system has not room for the last.
  constexpr int64_t kSlowMs = 2'500;
  TestServer server;
  RpcClient setup = server.Connect();
  for (int i = 0; i < kNamespaces; ++i) {
    Json rules = Json::array();
    for (int flow = i * kRules + 1; flow <= (i + 1) * kRules; ++flow) {
      Json rule = RuleJson(flow, 10);
      rule["resource"] = std::string(1000, 'r');
      rules.push_back(rule);
    }
    REQUIRE(setup.Call("rules_load", {"n" + std::to_string(i), rules.dump()}).ok());
  }
  const std::string request = EncodeRequest(1, "flows", Json::array({1000}));
  const size_t page = HalfClosed(server.address(), request).BytesToEnd();
  CHECK(page > kNamespaces * kRules * 1000);
  std::vector<std::unique_ptr<HalfClosed>> slow;
  for (std::string requests = request; slow.size() < kPagesMax; requests += request) {
    slow.push_back(std::make_unique<HalfClosed>(server.address(), requests));
  }
  PollUntil(kSlowMs, [] { return false; });
  for (size_t i = 0; i < slow.size(); ++i) CHECK(slow[i]->BytesToEnd() == (i + 1) * page);
}

TEST_CASE("a session may acquire under a rule of any namespace") {
  TestServer server;
  RpcClient shop = server.Connect("alice", "shop");
  LoadRules(&shop, RuleSet(RuleJson(1, 10)), "shop");
  LoadRules(&shop, RuleSet(RuleJson(2, 3, {{"thresholdType", 0}})), "bank");
  CHECK(Acquire(&shop, 1).status == kStatusOk);
  // AVG_LOCAL counts the sessions of the rule's namespace, and nobody is online in this one.
  const Grant refused = Acquire(&shop, 2);
  CHECK(refused.status == kStatusBlocked);
  CHECK(refused.level == 0);
  RpcClient bank = server.Connect("bob", "bank");
  const Grant granted = Acquire(&shop, 2);
  CHECK(granted.status == kStatusOk);
  CHECK(granted.level == 3);
  const auto rows = ListAll(&shop, "tokens", Json::array({nullptr}));
  REQUIRE(rows.size() == 2);
  // Shown is the holder's namespace.
  CHECK(rows[1].at("flow_id") == 2);
  CHECK(rows[1].at("namespace") == "shop");
}

}  // namespace
}  // namespace nowcalls::testing
