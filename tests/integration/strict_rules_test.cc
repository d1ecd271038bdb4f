// --rules-strict: a warning about a rule file is an error.
#include <doctest/doctest.h>

#include <string>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

// The limit is for all clients, or, since the key is misspelt, for each.
std::string RulesWith(const std::string& threshold_type) {
  return R"([{"resource": "db", "grade": 0, "count": 3, "clusterMode": true,
              "clusterConfig": {"flowId": 1, ")" +
         threshold_type + R"(": 1}}])";
}

TEST_CASE("a start under --rules-strict is refused with 64 for a rule file that is warned of") {
  const TempDir dir;
  const std::string file = dir.Sub("shop.json");
  WriteStringToFile(file, RulesWith("thresholdTyp"));
  ServerProcess server(dir.path(), {{"--rules", "shop=" + file, "--rules-strict"}, {}});
  server.StartWithoutWaiting();
  CHECK(server.process().Wait() == 64);
  CHECK(server.LogHas("1 warning, and rules-strict takes none; the first: rule 1"));
  CHECK(server.LogHas("did you mean clusterConfig.thresholdType?"));
}

TEST_CASE("under --rules-strict a running server keeps the last good set, and tells so") {
  const TempDir dir;
  const std::string file = dir.Sub("shop.json");
  WriteStringToFile(file, RulesWith("thresholdType"));
  TestServer server(nullptr, {{"--rules", "shop=" + file, "--rules-strict"}, {}});
  RpcClient client = server.Connect("worker", "shop");
  const auto row = [&]() -> Json {
    for (Json& found : AdminRows(Source::Live(server.address()), {"rules", "sources"})) {
      if (found.at("namespace") == "shop") return std::move(found);
    }
    return nullptr;
  };
  CHECK(row().at("refused_ms").is_null());
  CHECK(row().at("loaded_ms").is_number());
  WriteStringToFile(file, RulesWith("thresholdTyp"));
  REQUIRE(PollUntil(kPatienceMs, [&] { return row().at("refused_ms").is_number(); }));
  CHECK(row().at("refusal").get<std::string>().find("thresholdTyp") != std::string::npos);
  CHECK(Acquire(&client, 1).level == 3);
  WriteStringToFile(file, RulesWith("thresholdType"));
  CHECK(PollUntil(kPatienceMs, [&] { return row().at("refused_ms").is_null(); }));
}

TEST_CASE("without --rules-strict the warnings of a set in force are counted") {
  const TempDir dir;
  const std::string file = dir.Sub("shop.json");
  WriteStringToFile(file, RulesWith("thresholdTyp"));
  TestServer server(nullptr, {{"--rules", "shop=" + file}, {}});
  const auto rows = AdminRows(Source::Live(server.address()), {"rules", "sources"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("warnings") == 1);
}

}  // namespace
}  // namespace nowcalls::testing
