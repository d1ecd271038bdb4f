#include <algorithm>
#include <filesystem>

#include "fuzz/targets.h"
#include "fuzz/wire_requests.h"
#include "support/golden.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::fuzz {
namespace {

using testing::GoldenPath;
using testing::LoadGolden;

constexpr char kTurn = 3;
constexpr char kCommit = 4;
constexpr char kPass = 5;
constexpr char kRest = 7;

// A few values of the bits of a step that say how it happens.
std::string Step(int step, int how) { return std::string(1, static_cast<char>(step | how << 5)); }

// Steps of wire_target.cc: connection 0 sends these bytes, in as many pieces as it takes.
std::string Sends(std::string_view bytes) {
  std::string script;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, 255);
    script += std::string(1, 0) + static_cast<char>(piece.size()) + std::string(piece);
    bytes.remove_prefix(piece.size());
  }
  return script;
}

// Steps: connection 0 asks for what these bytes make (wire_requests.cc).
std::string Asks(int choice, std::string_view parameters) {
  return std::string("\1") + static_cast<char>(choice) + std::string(parameters);
}

// Each method, when a session has two tokens; with parameters that are good, and with others.
void AddMadeRequests(std::vector<std::string>* seeds) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  const std::string done = {kTurn, kCommit, kCommit};
  const std::string begin = Asks(13, "\1"s) + Asks(0, "\0\2"s) + Asks(0, "\1\4"s) + done;
  std::string all = begin;
  for (size_t choice = 0; choice < kMethodChoices; ++choice) {
    const auto byte = static_cast<int>(choice);
    for (const std::string& parameters : {"\0\0\0\0\0"s, "\x41\x01\x0a\x03\x20"s, "\xff\xfe"s}) {
      seeds->push_back(begin + Asks(byte, parameters) + done + kRest);
    }
    all += Asks(byte, "\0\0\0\0\0"s) + kTurn;
  }
  // As notifications, and in two pieces.
  seeds->push_back(begin + Asks(198, "\0"s) + Asks(201, "\1"s) + done + kRest);
  seeds->push_back(begin + Step(1, 1) + "\0\0\0\3"s + kTurn + Asks(0, "\1\0"s) + done + kRest);
  // Everything; rules without whom tokens are out; queues; a peer that does not read, a full disk,
  // a backup, a drain, a kill.
  seeds->push_back(all + kRest + Step(kRest, 4) + kPass + '\x20' + kRest);
  seeds->push_back(begin + Asks(17, "\0\0"s) + Asks(28, "\0"s) + done + kRest);
  seeds->push_back(begin + Asks(0, "\x58\x30"s) + Asks(0, "\x40\x41"s) + done + Asks(6, "\0"s) +
                   kPass + '\1' + kRest);
  seeds->push_back(begin + Step(3, 1) + all + kRest + Step(3, 5) + kRest);
  seeds->push_back(begin + Step(3, 2) + Asks(0, "\0\0"s) + done + Step(3, 6) + kRest);
  seeds->push_back(begin + Asks(31, "\0"s) + kTurn + Step(3, 7) + done + kRest);
  seeds->push_back(begin + Step(kRest, 5) + Asks(0, "\0\0"s) + done + Step(kRest, 7) + kRest);
}

std::vector<std::string> WireSeeds() {
  std::vector<std::string> seeds;
  std::string all;
  std::string hello;
  const auto requests = LoadGolden(GoldenPath("wire_requests.hex"));
  for (const auto& [name, bytes] : requests) {
    if (name == "hello") hello = bytes;
  }
  for (const auto& [name, bytes] : requests) {
    seeds.push_back(Sends(hello) + Sends(bytes) + kTurn + kCommit + kCommit + kRest);
    all += Sends(bytes) + kTurn;
  }
  seeds.push_back(all + kRest + static_cast<char>(kRest | 128) + kPass + '\x20' + kRest);
  for (const auto& [name, bytes] : LoadGolden(GoldenPath("wire_refused.hex"))) {
    seeds.push_back(Sends(bytes) + kRest);
  }
  AddMadeRequests(&seeds);
  return seeds;
}

// Each golden frame; then sound requests, one after the other and in queues.
std::vector<std::string> SentinelSeeds() {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  const std::string rest = {kTurn, kCommit, kCommit, kRest};
  std::vector<std::string> seeds;
  std::string all;
  for (const auto& [name, bytes] : LoadGolden(GoldenPath("sentinel_frames.hex"))) {
    if (name.ends_with("answer") || name.starts_with("answer")) continue;
    seeds.push_back(Sends(bytes) + rest);
    all += Sends(bytes);
  }
  seeds.push_back(all + rest);
  const auto ask = [](int type, int which, int count) {
    return "\1"s + static_cast<char>(type) + static_cast<char>(which) + static_cast<char>(count);
  };
  std::string life = ask(0, 0, 0);
  for (int flow = 1; flow < 4; ++flow) {
    for (int count = 0; count < 4; ++count) life += ask(3, flow, count) + ask(1, flow, count);
  }
  life += rest;
  for (int token = 0; token < 6; ++token) life += ask(5, token, 0) + ask(4, token, 0);
  seeds.push_back(life + rest + static_cast<char>(kRest | 128) + life + rest);
  // Waits that end with a release, with the time, with their connection.
  const std::string waits = ask(3, 1, 3) + rest + ask(3, 1, 0x81) + ask(3, 1, 0x82) + kTurn;
  seeds.push_back(waits + ask(4, 0, 0) + rest);
  seeds.push_back(waits + kPass + '\x20' + rest);
  seeds.push_back(waits + '\6' + rest);
  seeds.push_back("\2\1\5\7\0\0\0\0"s + "\2\xff\0"s + "\2\x7f\2\0\1"s + rest);
  return seeds;
}

// The decoder that `name`, a golden value, is for, by the number that ledger_target.cc gives it;
// -1: none. `key` is the name of the key that belongs to it.
int DecoderOf(const std::string& name, std::string* key) {
  *key = "";
  if (name.starts_with("token_value") && name != "token_value_max") return *key = "token_key", 0;
  if (name == "session_value") return *key = "session_key", 3;
  if (name == "rule_value") return *key = "rule_key", 4;
  if (name == "namespace_value") return *key = "namespace_key", 5;
  if (name == "history_value" || name.starts_with("history_block")) return *key = "history_key", 6;
  if (name == "format") return 7;
  if (name == "clock") return 8;
  if (name == "seal") return 9;
  if (name == "watermark") return 10;
  if (name == "witness_slot" || name == "witness_slot_v1") return 12;
  if (name == "log_data") return 14;
  if (name == "rate_value") return *key = "rate_key", 15;
  return -1;
}

std::vector<std::string> LedgerSeeds() {
  std::vector<std::string> seeds;
  const auto values = LoadGolden(GoldenPath("ledger_values.hex"));
  for (const auto& [name, value] : values) {
    std::string key_name;
    const int decoder = DecoderOf(name, &key_name);
    if (decoder < 0) continue;
    const std::string key = key_name.empty() ? "" : values.at(key_name);
    const bool sized = decoder == 4 || decoder == 5;
    const std::string size = sized ? std::string(1, static_cast<char>(key.size())) : "";
    seeds.push_back(static_cast<char>(decoder) + size + key + value);
  }
  const std::string& slot = values.at("witness_slot");
  seeds.push_back("\x0d\x01" + slot);
  seeds.push_back(std::string("\x0d\0", 2) + slot + "\1" + slot);
  // Each record with a seal behind it, and all of them.
  std::string all;
  std::string seal;
  const auto records = LoadGolden(GoldenPath("ledger_records.hex"));
  for (const auto& [name, bytes] : records) {
    if (bytes.front() == 0x0a) seal = bytes;
  }
  for (const auto& [name, bytes] : records) {
    if (bytes == seal) continue;
    seeds.push_back(std::string(1, 11) + bytes + seal);
    all += bytes;
  }
  seeds.push_back(std::string(1, 11) + all + seal);
  return seeds;
}

std::vector<std::string> RulesSeeds() {
  std::vector<std::string> seeds = {
      "[]",
      (R"([{"resource":"r","count":2.5,"clusterMode":true,"clusterConfig":{"flowId":1,)"
       R"("thresholdType":1,"maxPerClient":"25%","shadow":true,"acquireRefuseStrategy":3}}])"),
      (R"({"resource":"r","count":1e9,"clusterMode":true,)"
       R"("clusterConfig":{"flowId":9223372036854775807}})"),
      (R"([{"resource":"r","count":1,"clusterMode":true},{"resource":"r","paramIdx":0,"count":1,)"
       R"("clusterMode":true},{"resource":"s","count":1,"clusterMode":true,"clusterConfig":{}}])"),
      "// c\n[/* x */{\"resource\":\"\\u00e9\",\"count\":0,\"clusterMode\":false}]",
      (R"([{"resource":"r","count":"1,000","count":"0.5","clusterMode":"TRUE",)"
       R"("clusterConfig":{"flowId":"7","thresholdType":"1.0","shadow":"N"}},)"
       R"({"resource":"p","clusterMode":"0","paramIdx":0}])"),
      R"([{"resource":"r","count":1,"timeWindow":10,"grade":0}])",
      (R"([{"id":1,"app":"a","rule":{"resource":"r","paramIdx":-1,"count":0.5,"grade":"0",)"
       R"("clusterMode":1,"paramFlowItemList":[{"object":"-0.0","classType":"float","count":1},)"
       R"({"object":"TRUE","classType":"java.lang.Boolean","count":"2"},)"
       R"({"object":"\u00e9","classType":"char","count":3}],"clusterConfig":{"flowId":1,)"
       R"("paramsMaxCapacity":9,"shadow":true}}}])"),
      (R"([{"resource":"r","metricType":1,"controlBehavior":1,"threshold":3,"durationInSec":2,)"
       R"("paramKey":"k","specificItems":[{"valKind":3,"valStr":"1e-5","threshold":1},)"
       R"({"valKind":0,"valStr":"-2147483649","threshold":0}],"clusterConfig":{"flowId":2}}])"),
      (R"([{"resource":"r","threshold":1.5,"statIntervalInMs":997,"warmUpColdFactor":3,)"
       R"("tokenCalculateStrategy":1,"clusterConfig":{"flowId":3,"maxPerClient":1}}])"),
      std::string(100, '['),
  };
  for (const auto& file : std::filesystem::directory_iterator(NOWCALLS_SOURCE_DIR "/data/rules")) {
    seeds.push_back(testing::ReadFileToString(file.path()));
  }
  return seeds;
}

std::vector<std::string> ConfigSeeds() {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  return {
      "\0listen = \"127.0.0.1:0\"\ntokens-max = 1000\ndurability = \"interval:50\"\n"s,
      "\0rules = [\"shop=/a.json\", \"bank=/b.json\"]\ninsecure-listen = true\n"s,
      "\0[table]\na.b = 1\nd = 1979-05-27T07:32:00Z\ns = '''x'''\n"s,
      "\0log-level = 3\nunknown = 1\n"s,
      "\1--listen\n[::1]:80\n--data-dir=/d\n--durability\nnone\n--rules\na=b\0LOG_LEVEL=debug\n"s,
      "\1--help"s,
      "\1--version"s,
      "\1--connections-max=5\n--tokens-max\n0x10\n--\n-1\0TOKENS_MAX=1e3\nWHAT=1\n"s,
      "\1--mass-expiry-factor=1.5\n--expire-strategy\nstrict\n--insecure-listen"s,
  };
}

std::vector<std::string> AccessSeeds() {
  return {
      testing::ReadFileToString(NOWCALLS_SOURCE_DIR "/data/access/sample.toml"),
      "[[principal]]\nname = 'a'\nrole = 'client'\nnamespaces = ['*']\nnetworks = '::/0'\n",
      "principal = [{name = \"a\", role = \"observer\", certificates = [\"x\"]}]\n",
      ("[[principal]]\nname = \"\\u00e9\"\nrole = \"administrator\" # \u00e9\nsecret_sha256 = '" +
       std::string(64, '7') + "' # s\n"),
      "[[principal]]\nname = 7\nnetworks = ['10.0.0.1/8', '10.0.0.0/33']\n[principal.x]\n",
  };
}

std::vector<std::string> LogSeeds() {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  // Three records; some that fill blocks, or end just before and behind the end of one; numbers
  // that are missing, twice, or no batch's; logs whose bytes are given.
  const std::string three = "\1\0\3\0\x40\0\1\0\7"s;
  const std::string blocks = "\1\0\3\2\xff\3\x1f\0\1"s;
  std::vector<std::string> seeds = {
      three, blocks, "\1\0\2\2\xff\0\1"s, "\1\0\4\4\1\0\2\x08\3\x0c\4"s, "\0"s, "\0\0\0\0"s};
  for (char left = 0; left < 16; ++left) {
    seeds.push_back("\1\0\2\3"s + static_cast<char>(24 + left) + "\0\1"s);
  }
  for (int how = 0; how < 6; ++how) {
    seeds.push_back(three + static_cast<char>(how) + "\1\xf4"s);
    seeds.push_back(three + static_cast<char>(132 + how) + "\0\x10"s);
    seeds.push_back(blocks + static_cast<char>(132 + how) + "\4\0"s);
    seeds.push_back(three + "\4\0\0"s + static_cast<char>(how) + "\1\xf4"s);
  }
  // Others beside it.
  for (char beside = 1; beside < 6; ++beside) {
    seeds.push_back("\1"s + beside + three.substr(2));
    seeds.push_back("\1"s + beside + blocks.substr(2) + "\x84\4\0"s);
    seeds.push_back("\1"s + beside + three.substr(2) + "\x87\0\x04"s);
  }
  return seeds;
}

// Requests that are answered and some that are not, each for two names.
std::vector<std::string> HttpSeeds() {
  std::vector<std::string> seeds;
  for (const char* target : {"/",
                             "/app.js",
                             "/nothing",
                             "/metrics",
                             "/metrics?limit=1&namespace=default&flow=7",
                             "/metrics?limit=20001",
                             "/api/flows?sort=held&filter=a&namespace=default&offset=1&limit=2",
                             "/api/flow?id=7",
                             "/api/flow?id=9223372036854775807",
                             "/api/clients?limit=1",
                             "/api/client?id=1",
                             "/api/history?filter=expired",
                             "/api/server",
                             "/api/look?view=flow&id=7",
                             "/api/look?view=client&id=2",
                             "/api/stream?view=flow&id=7",
                             "/api/stream?view=flows&sort=waiting",
                             "/api/stream?view=server",
                             "/api/none",
                             "/version",
                             "/basicInfo",
                             "/metric?startTime=1&endTime=1800000000000&identity=a",
                             "/metric?startTime=1",
                             "/clusterNode?type=notZero",
                             "/jsonTree?type=root",
                             "/getRules?type=flow",
                             "/getParamFlowRules",
                             "/getClusterMode",
                             "/cluster/server/info",
                             "/setRules?data=[]",
                             "/cluster/server/metricList?namespace=default",
                             "/cluster/server/fetchConfig?namespace=a",
                             "/cluster/server/flowRules?namespace=a",
                             "/cluster/server/paramRules"}) {
    for (const char* name : {"a", "\"a\\|\u2028<b>'"}) {
      seeds.push_back(std::string(target) + "\nlocalhost:80\n\n" + name);
    }
  }
  seeds.emplace_back("/metrics\n[::1]:18731\napplication/openmetrics-text; version=1.0.0\na|b");
  return seeds;
}

// Steps of tls_target.cc. A whole life of TLS, with client certificates, in pieces, changed; plain
// bytes; each also where TLS, or plain, is refused.
std::vector<std::string> TlsSeeds() {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  const std::string shakes = "\1\3\1\3"s;
  const std::vector<std::string> lives = {
      shakes + "\4\5hello\1\5\3bye\3\6\3"s, "\4\5early"s + shakes + "\7"s,
      "\x29\x29\x29\x29\1\3\x11\x11\1\3"s,  "\2\7\1\3"s,
      shakes + "\4\5hello\2\x0a\1"s,        shakes + "\0\x08\x17\3\3\0\3abc"s,
      "\0\x0f\x94\0\1\xa4ping\x90\5\3yes"s, "\0\x09\x16\3\1\0\4\1\0\0\0"s,
  };
  std::vector<std::string> seeds;
  for (char how = 0; how < 4; ++how) {
    for (const std::string& life : lives) seeds.push_back(how + life);
  }
  return seeds;
}

}  // namespace

std::vector<std::string> SeedsOf(std::string_view target) {
  if (target == "wire") return WireSeeds();
  if (target == "sentinel") return SentinelSeeds();
  if (target == "ledger") return LedgerSeeds();
  if (target == "rules") return RulesSeeds();
  if (target == "config") return ConfigSeeds();
  if (target == "access") return AccessSeeds();
  if (target == "log") return LogSeeds();
  if (target == "http") return HttpSeeds();
  if (target == "tls") return TlsSeeds();
  return {};
}

}  // namespace nowcalls::fuzz
