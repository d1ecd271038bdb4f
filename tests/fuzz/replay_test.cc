// Every fuzz target on its seeds, on pieces of them, and on what fuzzing has found so far
// (tests/fuzz/corpus), as ordinary tests.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "base/hex.h"
#include "core/books.h"
#include "fuzz/byte_source.h"
#include "fuzz/targets.h"
#include "fuzz/wire_requests.h"
#include "server/config/settings.h"
#include "support/engine_harness.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownBytes = 200;

using Target = void (*)(std::string_view input);

void RunOn(Target target, const std::string& input) {
  CAPTURE(input.size());
  CAPTURE(ToHex(input.substr(0, kShownBytes)));
  target(input);
}

// Whole, longer, cut short, and with single bytes that are others.
void Replay(const std::string& name, Target target) {
  const std::vector<std::string> seeds = SeedsOf(name);
  REQUIRE(seeds.size() >= 5);
  constexpr size_t kVariants = 12;
  for (const std::string& seed : seeds) {
    RunOn(target, seed);
    for (const char more : {'\0', 'x'}) RunOn(target, seed + more);
    for (size_t i = 1; i < kVariants; ++i) {
      const size_t at = seed.size() * i / kVariants;
      RunOn(target, seed.substr(0, at));
      std::string changed = seed;
      changed[at] = static_cast<char>(changed[at] ^ (1 << (i % 8)));
      RunOn(target, changed);
    }
  }
  const fs::path corpus = fs::path(NOWCALLS_SOURCE_DIR "/tests/fuzz/corpus") / name;
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(corpus)) {
    CAPTURE(entry.path().string());
    RunOn(target, testing::ReadFileToString(entry.path()));
    ++files;
  }
  CHECK(files > 0);
}

// The methods that are answered without an error, when a session has tokens of flow 1, and
// `before` was asked.
void AddAnswered(std::string_view before, std::set<std::string_view>* methods) {
  for (size_t choice = 0; choice < kMethodChoices; ++choice) {
    testing::EngineHarness h;
    h.driver().cluster = ClusterOfTwo();
    const engine::ConnectionId id = h.Connect();
    uint32_t msgid = 0;
    const auto ask = [&](const std::string& bytes) {
      ByteSource input(bytes);
      const MadeRequest made =
          MakeRequest({.msgid = ++msgid, .next_fence = h.core().books().next_fence()}, &input);
      h.Send(id, made.bytes);
      h.Settle();
      if (h.driver().backup.has_value()) h.engine().OnBackupDone(id, wire::BackupReply{}, h.now());
      h.Settle();
      const auto replies = h.TakeReplies(id);
      REQUIRE(replies.size() == 1);
      CheckReply(*made.answered, replies[0]);
      if (!replies[0].error.has_value()) methods->insert(wire::MethodName(*made.answered));
    };
    ask(std::string("\x0d\0", 2));
    ask(std::string(3, '\0'));
    ask(std::string(3, '\0'));
    if (!before.empty()) ask(std::string(before));
    ask(static_cast<char>(choice) + std::string(6, '\0'));
  }
}

TEST_CASE("the wire target asks for every method in a way that is answered") {
  std::set<std::string_view> answered;
  AddAnswered("", &answered);
  CHECK(answered.count("purge") == 0);
  AddAnswered(std::string_view("\x11\0\0", 3), &answered);  // Its rule is removed.
  for (int i = 1; i <= UINT8_MAX; ++i) {
    const std::string_view name = wire::MethodName(static_cast<wire::Method>(i));
    if (wire::MethodFromName(name) == wire::Method::kUnknown) continue;
    CAPTURE(name);
    CHECK(answered.contains(name));
  }
}

TEST_CASE("the dictionary of the config target has every setting") {
  const std::string words =
      testing::ReadFileToString(NOWCALLS_SOURCE_DIR "/tests/fuzz/dictionaries/config.dict");
  for (const server::Setting& setting : server::Settings()) {
    if (setting.name == "config") continue;  // It names a file that would be read.
    CAPTURE(setting.name);
    CHECK(words.find("\"" + setting.flag() + "=\"") != std::string::npos);
    CHECK(words.find("\"" + setting.toml_key() + " = \"") != std::string::npos);
    CHECK(words.find("\"" + setting.environment().substr(9) + "=\"") != std::string::npos);
  }
}

TEST_CASE("the wire target holds on its seeds and its corpus") { Replay("wire", FuzzWire); }
TEST_CASE("the sentinel target holds on its seeds and its corpus") {
  Replay("sentinel", FuzzSentinel);
}
TEST_CASE("the ledger target holds on its seeds and its corpus") { Replay("ledger", FuzzLedger); }
TEST_CASE("the rules target holds on its seeds and its corpus") { Replay("rules", FuzzRules); }
TEST_CASE("the config target holds on its seeds and its corpus") { Replay("config", FuzzConfig); }
TEST_CASE("the access target holds on its seeds and its corpus") { Replay("access", FuzzAccess); }
TEST_CASE("the log target holds on its seeds and its corpus") { Replay("log", FuzzLog); }
TEST_CASE("the http target holds on its seeds and its corpus") { Replay("http", FuzzHttp); }
TEST_CASE("the tls target holds on its seeds and its corpus") { Replay("tls", FuzzTls); }

}  // namespace
}  // namespace nowcalls::fuzz
