// Rules at URLs of web servers: changed, broken, gone, slow, hostile, behind TLS.
#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/certificates.h"
#include "support/document_server.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

using Manner = DocumentServer::Manner;

constexpr char kOften[] = "--rules-poll-ms=1000";

std::string RulesOfLevel(double level) { return RuleSet({RuleJson(1, level)}).dump(); }

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A server whose namespace "shop" is fed by a web server.
class RuleUrlFixture {
 public:
  RuleUrlFixture() {
    web.Set(RulesOfLevel(10));
    UseUrl(web.url(), {kOften});
  }
  void UseUrl(const std::string& url, const std::vector<std::string>& more = {}) {
    server.options().arguments = {"--rules", "shop=" + url};
    server.options().arguments.insert(server.options().arguments.end(), more.begin(), more.end());
  }
  void Start() {
    server.Start();
    client = RpcClient(server.address());
  }
  void AwaitLevel(int64_t level) const {
    const bool seen = ReachesLevel(server.address(), 1, level);
    INFO(server.log());
    REQUIRE(seen);
  }
  void AwaitLog(const std::string& text) const {
    const bool seen = server.LogHas(text);
    INFO(server.log());
    REQUIRE_MESSAGE(seen, text);
  }
  void AwaitAnswers(int code, int count) const {
    REQUIRE(PollUntil(kPatienceMs, [&] { return web.answered(code) >= count; }));
  }
  std::string Line() const { return "rule source " + web.url() + ": "; }
  // A start that must fail with 74.
  void CheckFailsToStart(const std::string& why) {
    server.StartWithoutWaiting();
    CHECK(server.process().Wait() == 74);
    AwaitLog(why);
  }
  Json RowOfSource() const {
    for (Json& row : AdminRows(Source::Live(server.address()), {"rules", "sources"})) {
      if (row.at("namespace") == "shop") return std::move(row);
    }
    return nullptr;
  }

  TempDir dir;
  DocumentServer web;
  ServerProcess server{dir.path()};
  RpcClient client;
};

TEST_CASE_FIXTURE(RuleUrlFixture,
                  "a document that changes is loaded, and one that does not is not") {
  Start();
  AwaitLevel(10);
  AwaitAnswers(304, 2);
  web.Set(RulesOfLevel(20));
  AwaitLevel(20);
  AwaitAnswers(304, 4);
  CHECK(CountOf(server.log(), "loaded, ") == 1);
  AwaitLog(Line() + "loaded, 1 rule of namespace 'shop' in force");
  // The same without tags: the content decides.
  web.Behave(Manner::kPlain);
  const int before = web.answered(200);
  AwaitAnswers(200, before + 2);
  CHECK(CountOf(server.log(), "loaded, ") == 1);
}

TEST_CASE_FIXTURE(RuleUrlFixture, "a bad document keeps the last good set, and operators see why") {
  Start();
  web.Set("[{\"resource\": \"half of a docu");
  AwaitLog("not valid JSON");
  AwaitLog("the rules of before stay in force");
  CHECK(Acquire(&client, 1).level == 10);
  CHECK(RowOfSource().at("refusal").get<std::string>().find("not valid JSON") != std::string::npos);
  CHECK(RowOfSource().at("source") == web.url());
  web.Set(RuleSet({RuleJson(1, 30, {{"resourceTimeout", -1}})}).dump());
  AwaitLog(Line() + "rule 1 (resource \"resource-1\", flowId 1): clusterConfig.resourceTimeout");
  web.Set(RulesOfLevel(30));
  AwaitLevel(30);
  CHECK(RowOfSource().at("refused_ms").is_null());
}

TEST_CASE_FIXTURE(RuleUrlFixture, "a web server that goes and comes back is told of once each") {
  Start();
  web.Stop();
  AwaitLog(Line() + "cannot be reached: Connection refused; the rules of before stay in force");
  CHECK(Acquire(&client, 1).level == 10);
  CHECK(RowOfSource().at("refusal").get<std::string>().find("cannot be reached") !=
        std::string::npos);
  web.Start();
  AwaitLog(Line() + "is back, unchanged");
  CHECK(CountOf(server.log(), "cannot be reached") == 1);
  web.SetCode(404);
  AwaitLog(Line() + "answers 404; the rules of before stay in force");
  web.SetCode(302);
  AwaitLog(Line() + "answers 302: name the address to which it redirects");
  web.Set(RulesOfLevel(20));
  web.SetCode(0);
  AwaitLevel(20);
}

TEST_CASE_FIXTURE(RuleUrlFixture, "a restart without the web server has the rules of the ledger") {
  Start();
  AwaitLevel(10);
  server.Kill9();
  web.Stop();
  Start();
  AwaitLog("cannot be reached");
  CHECK(Acquire(&client, 1).level == 10);
  web.Set(RulesOfLevel(20));
  web.Start();
  AwaitLevel(20);
}

TEST_CASE_FIXTURE(RuleUrlFixture,
                  "a first start without an answer ends with 74, with a bad one 64") {
  web.Stop();
  CheckFailsToStart("rules: the source " + web.url() +
                    " cannot be reached: Connection refused; and the ledger has no rules of "
                    "namespace 'shop' from there that could stay in force");
  web.Start();
  web.Set("{}");
  server.StartWithoutWaiting();
  CHECK(server.process().Wait() == 64);
  AwaitLog("rules: the source " + web.url() + " is refused: ");
  web.Set(RulesOfLevel(10));
  Start();
  AwaitLevel(10);
}

TEST_CASE_FIXTURE(RuleUrlFixture, "answers without end are refused by their length") {
  Start();
  web.Behave(Manner::kEndless);
  AwaitLog(Line() + "is longer than 67108864 bytes; the rules of before stay in force");
  web.Behave(Manner::kEndlessHead);
  AwaitLog(Line() + "has a head of more than 65536 bytes");
  CHECK(Acquire(&client, 1).level == 10);
  web.Set(RulesOfLevel(20));
  web.Behave(Manner::kTagged);
  AwaitLevel(20);
}

TEST_CASE_FIXTURE(RuleUrlFixture, "a web server that does not answer holds up no end") {
  Start();
  for (const Manner manner : {Manner::kSilent, Manner::kEndless}) {
    const size_t asked = web.questions().size();
    web.Behave(manner);
    REQUIRE(PollUntil(kPatienceMs, [&] { return web.questions().size() > asked; }));
    CHECK(server.Terminate() == 0);
    AwaitLog("closed in good order");
    CHECK(CountOf(server.log(), "left unfinished") == 0);
    Start();
  }
}

TEST_CASE_FIXTURE(RuleUrlFixture, "Consul's answer to a blocking query brings a change at once") {
  web.Behave(Manner::kConsul);
  UseUrl(web.url("/v1/kv/rules/shop?raw"), {"--rules-poll-ms=3600000"});
  Start();
  AwaitLevel(10);
  web.Set(RulesOfLevel(20));
  AwaitLevel(20);
  web.Set(RulesOfLevel(30));
  AwaitLevel(30);
  CHECK(web.questions().front().target == "/v1/kv/rules/shop?raw");
  CHECK(web.questions().back().target.starts_with("/v1/kv/rules/shop?raw&index="));
  // A request that waits is given up for SIGHUP.
  server.process().Signal(SIGHUP);
  AwaitLog("reloaded, 1 rule of namespace 'shop' in force");
  CHECK(server.Terminate() == 0);
}

TEST_CASE_FIXTURE(RuleUrlFixture,
                  "headers of a file are sent along, and the log has none of them") {
  const std::string file = dir.Sub("headers");
  WriteStringToFile(file,
                    "# of Consul\nX-Consul-Token: deep-secret\r\n\nAccept: application/json\n");
  UseUrl(web.url(), {kOften, "--rules-header-file", file, "--log-level", "debug"});
  Start();
  CHECK(web.questions().back().headers.at("x-consul-token") == "deep-secret");
  CHECK(web.questions().back().headers.at("accept") == "application/json");
  WriteStringToFile(file, "Authorization: Bearer renewed\n");
  REQUIRE(PollUntil(kPatienceMs, [&] {
    const auto headers = web.questions().back().headers;
    const auto found = headers.find("authorization");
    return found != headers.end() && found->second == "Bearer renewed";
  }));
  WriteStringToFile(file, "deep-secret\n");
  AwaitLog(Line() + "is not asked: rules-header-file: line 1 of " + file +
           " is no `Name: value`; the rules of before stay in force");
  CHECK(CountOf(server.log(), "deep-secret") == 0);
}

TEST_CASE("https is believed by rules-ca alone, and for the right name") {
  const Authority authority("rules' own");
  const Authority stranger("a stranger");
  const TempDir dir;
  WriteStringToFile(dir.Sub("ca.pem"), authority.certificate());
  const auto try_with = [&](const IssuedCertificate& issued, bool ca) {
    DocumentServer web(issued);
    web.Set(RulesOfLevel(10));
    const TempDir own;
    ServerProcess server(own.path(), {{"--rules", "shop=" + web.url()}, {}});
    if (ca) server.options().arguments.push_back("--rules-ca=" + dir.Sub("ca.pem"));
    server.StartWithoutWaiting();
    if (server.WaitUntilServing()) return std::string("serves");
    return server.log();
  };
  const CertificateSpec right{.names = {{'I', "127.0.0.1"}}};
  const CertificateSpec wrong{.names = {{'D', "elsewhere.example"}}};
  const IssuedCertificate of_authority = authority.Issue(right);
  const std::string good = try_with(of_authority, /*ca=*/true);
  CHECK_MESSAGE(good == "serves", good);
  for (const std::string& log :
       {try_with(of_authority, /*ca=*/false), try_with(stranger.Issue(right), /*ca=*/true),
        try_with(authority.Issue(wrong), /*ca=*/true)}) {
    INFO(log);
    CHECK(log.find("cannot be read: SSL") != std::string::npos);
    CHECK(log.find("and the ledger has no rules") != std::string::npos);
  }
}

}  // namespace
}  // namespace nowcalls::testing
