#include <algorithm>
#include <filesystem>

#include "fuzz/targets.h"
#include "support/golden.h"
#include "support/process.h"

namespace nowcalls::fuzz {
namespace {

using testing::GoldenPath;
using testing::LoadGolden;

constexpr char kTurn = 3;
constexpr char kCommit = 4;
constexpr char kPass = 5;
constexpr char kRest = 7;

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
  return seeds;
}

// The decoder that `name`, a golden value, is for, by the number that ledger_target.cc gives it;
// -1: none. `key` is the name of the key that belongs to it.
int DecoderOf(const std::string& name, std::string* key) {
  *key = "";
  if (name == "token_value") return *key = "token_key", 0;
  if (name == "session_value") return *key = "session_key", 3;
  if (name == "rule_value") return *key = "rule_key", 4;
  if (name == "namespace_value") return *key = "namespace_key", 5;
  if (name == "history_value") return *key = "history_key", 6;
  if (name == "format") return 7;
  if (name == "clock") return 8;
  if (name == "seal") return 9;
  if (name == "watermark") return 10;
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
      R"([{"resource":"r","count":2.5,"clusterMode":true,"clusterConfig":{"flowId":1,)"
      R"("thresholdType":1,"maxPerClient":"25%","shadow":true,"acquireRefuseStrategy":3}}])",
      R"({"resource":"r","count":1e9,"clusterMode":true,)"
      R"("clusterConfig":{"flowId":9223372036854775807}})",
      "// c\n[/* x */{\"resource\":\"\\u00e9\",\"count\":0,\"clusterMode\":false}]",
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

std::vector<std::string> LogSeeds() {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  // Three records; the same with each kind of damage in the middle and near the end; one that fills
  // more than a block; logs whose bytes are given.
  const std::string three = "\1\3\0\x40\1\0\0\7"s;
  std::vector<std::string> seeds = {three, "\1\2\xff\xff\0\1"s, "\1\1\x7f\xf1"s, "\0"s,
                                    "\0\0\0\0"s};
  for (int how = 0; how < 5; ++how) {
    seeds.push_back(three + static_cast<char>(how) + "\1\xf4"s);
    seeds.push_back(three + static_cast<char>(130 + how) + "\0\x10"s);
    seeds.push_back("\1\2\0\1\x20\0"s + static_cast<char>(130 + how) + "\4\0"s);
    seeds.push_back(three + "\4\0\0"s + static_cast<char>(how) + "\1\xf4"s);
  }
  return seeds;
}

}  // namespace

std::vector<std::string> SeedsOf(std::string_view target) {
  if (target == "wire") return WireSeeds();
  if (target == "ledger") return LedgerSeeds();
  if (target == "rules") return RulesSeeds();
  if (target == "config") return ConfigSeeds();
  if (target == "log") return LogSeeds();
  return {};
}

}  // namespace nowcalls::fuzz
