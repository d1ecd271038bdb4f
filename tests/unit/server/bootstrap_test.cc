#include "server/bootstrap.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/exit_codes.h"
#include "base/fingerprint.h"
#include "base/limits.h"
#include "server/rules/rule_files.h"
#include "server/system.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::server {
namespace {

TEST_CASE("each kind of failure has the exit code that tells a supervisor what to do") {
  CHECK(ExitCodeOf(Status::Ok()) == 0);
  CHECK(ExitCodeOf(Status::InvalidArgument("rules")) == 64);
  CHECK(ExitCodeOf(Status::Corruption("seal")) == 65);
  CHECK(ExitCodeOf(Status::FailedPrecondition("format 9")) == 65);
  CHECK(ExitCodeOf(Status::AlreadyExists("lock")) == 74);
  CHECK(ExitCodeOf(Status::IoError("disk")) == 74);
}

TEST_CASE("the server's own files are reserved before connections are counted") {
  CHECK(ConnectionsThatFit(10'000, 1'000'000) == 10'000);
  CHECK(ConnectionsThatFit(10'000, 1024) == 768);
  CHECK(ConnectionsThatFit(10'000, kFileLimitMin) == 44);
  CHECK(ConnectionsThatFit(10, 1024) == 10);
}

const std::string& RulesDir() {
  static const std::string dir = std::string(NOWCALLS_SOURCE_DIR) + "/data/rules/";
  return dir;
}

TEST_CASE("the sample rule files are valid together, and what they skip is said") {
  const auto texts = ReadRuleFiles({{"shop", RulesDir() + "shop.json"},
                                    {"llm-gateway", RulesDir() + "llm-gateway.json"},
                                    {"report-batch", RulesDir() + "report-batch.json"},
                                    {"default", RulesDir() + "first.json"},
                                    {"keys", RulesDir() + "api-keys.json"},
                                    {"go", RulesDir() + "go.json"}});
  CHECK(CheckRuleFiles(texts).ok());
  CHECK(texts[0].parsed.rules.size() == 5);
  CHECK(texts[1].parsed.rules.size() == 4);
  CHECK(texts[2].parsed.rules.size() == 2);
  CHECK(texts[3].parsed.rules.size() == 1);
  CHECK(texts[3].parsed.Remarks().empty());
  CHECK(texts[4].parsed.rules.size() == 2);
  CHECK(texts[4].parsed.Remarks().empty());
  CHECK(texts[5].parsed.rules.size() == 4);
  CHECK(texts[5].parsed.Remarks().empty());
  const std::string description = DescribeRules(texts);
  CHECK(description.find("shop.json: 5 rules for namespace 'shop'\n") != std::string::npos);
  CHECK(description.find("product-search") != std::string::npos);
}

TEST_CASE("files that have more rules together than a server takes are refused") {
  const auto file_of = [](const std::string& ns, int64_t first, int64_t last) {
    LoadedRuleFile loaded;
    loaded.file = {.name_space = ns, .path = ns + ".json"};
    for (int64_t flow = first; flow <= last; ++flow) {
      loaded.parsed.rules.emplace_back().flow_id.value = flow;
    }
    return loaded;
  };
  const int64_t most = Limits().rules_max;
  CHECK(CheckRuleFiles({file_of("a", 1, 1'000), file_of("b", 1'001, most)}).ok());
  CHECK(CheckRuleFiles({file_of("a", 1, 1'000), file_of("b", 1'001, most + 1)}).message() ==
        "rules: the files have 200001 rules together, and a server takes 200000 (rules_max)");
}

TEST_CASE("a rule file that is missing or wrong is refused by name") {
  const Status missing = CheckRuleFiles(ReadRuleFiles({{"shop", "/nonexistent.json"}}));
  CHECK(missing.code() == StatusCode::kInvalidArgument);
  CHECK(missing.message() == "rules: cannot open /nonexistent.json: No such file or directory");
  const testing::TempDir dir;
  REQUIRE(mkfifo(dir.Sub("pipe").c_str(), 0600) == 0);
  const Status pipe = CheckRuleFiles(ReadRuleFiles({{"shop", dir.Sub("pipe")}}));
  CHECK(pipe.message() == "rules: cannot read " + dir.Sub("pipe") +
                              ": it is a pipe or a device, and nothing came from it for 2000 ms");
  const Status directory = CheckRuleFiles(ReadRuleFiles({{"shop", dir.path()}}));
  CHECK(directory.message() == "rules: cannot read " + dir.path() + ": Is a directory");

  const std::string file = dir.Sub("bad.json");
  testing::WriteStringToFile(file, R"([{"resource": "r", "count": -1, "clusterMode": true,
                                        "clusterConfig": {"flowId": 1}}])");
  const auto files = ReadRuleFiles({{"shop", file}});
  CHECK(files[0].fingerprint == Fingerprint(testing::ReadFileToString(file)));
  CHECK(ReadRuleFiles({{"shop", "/nonexistent.json"}})[0].fingerprint == 0);
  const Status wrong = CheckRuleFiles(files);
  CHECK(wrong.code() == StatusCode::kInvalidArgument);
  CHECK(wrong.message().starts_with("rules: " + file + ": rule 1"));
  CHECK(wrong.message().find("count must be >= 0") != std::string::npos);
}

TEST_CASE("a rule file that is warned of is refused where warnings are errors") {
  const testing::TempDir dir;
  const std::string file = dir.Sub("warned.json");
  testing::WriteStringToFile(file, R"([{"resource": "r", "count": 3, "clusterMode": true,
                                        "clusterConfig": {"flowId": 1, "thresholdTyp": 1}}])");
  CHECK(CheckRuleFiles(ReadRuleFiles({{"shop", file}})).ok());
  const Status strict = CheckRuleFiles(ReadRuleFiles({{"shop", file}}, /*strict=*/true));
  CHECK(strict.code() == StatusCode::kInvalidArgument);
  CHECK(strict.message() ==
        "rules: " + file +
            ": 1 warning, and rules-strict takes none; the first: rule 1 (resource \"r\", flowId "
            "1): 'clusterConfig.thresholdTyp' is not known and is ignored; did you mean "
            "clusterConfig.thresholdType?");
  // Sample rules have none, and a rule that is skipped is no warning.
  CHECK(CheckRuleFiles(ReadRuleFiles({{"shop", RulesDir() + "shop.json"}}, /*strict=*/true)).ok());
}

TEST_CASE("a flowId in the rule files of two namespaces is refused before the ledger is touched") {
  const std::string file = RulesDir() + "shop.json";
  const Status both = CheckRuleFiles(ReadRuleFiles({{"a", file}, {"b", file}}));
  CHECK(both.code() == StatusCode::kInvalidArgument);
  CHECK(both.message().find("flowId 1001 is also in") != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::server
