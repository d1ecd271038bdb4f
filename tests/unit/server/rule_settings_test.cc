#include "server/config/rule_settings.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "server/config/config.h"

namespace nowcalls::server {
namespace {

Result<Invocation> ReadRules(const std::vector<std::string>& flags, const Environment& env = {}) {
  std::vector<const char*> argv = {"nowcalls-server"};
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  return ReadInvocation(static_cast<int>(argv.size()), argv.data(), env);
}

std::string RuleErrorOf(const std::vector<std::string>& flags) {
  return ReadRules(flags).status().message();
}

TEST_CASE("rules are at URLs of etcd and of web servers, beside files") {
  const auto read = ReadRules({"--rules=shop=etcds://a:2379,[::1]:2/nowcalls/rules/shop",
                               "--rules=bank=https://c/v1/kv/bank?raw&dc=x=1",
                               "--rules=http://d:8080", "--rules=files=/etc/a=b.json"});
  REQUIRE(read.status().ToString() == "ok");
  const ServerConfig& config = read->config;
  CHECK(config.rules == std::vector<RuleFile>{{"files", "/etc/a=b.json"}});
  REQUIRE(config.rule_urls.size() == 3);
  const RuleUrl& etcd = config.rule_urls[0];
  CHECK(etcd.name_space == "shop");
  REQUIRE(etcd.etcd.has_value());
  CHECK(etcd.etcd->endpoints == std::vector<HostPort>{{"a", 2379}, {"::1", 2}});
  CHECK(etcd.etcd->path == "/nowcalls/rules/shop");
  CHECK(etcd.etcd->tls);
  CHECK(config.rule_urls[1].url == "https://c/v1/kv/bank?raw&dc=x=1");
  CHECK(config.rule_urls[1].https());
  CHECK(config.rule_urls[2].name_space == "default");
  CHECK_FALSE(config.rule_urls[2].etcd.has_value());
}

TEST_CASE("the endpoints of a URL are not split where the environment's values are") {
  const std::string url = "etcd://a:1,b:2,c:3/k";
  const auto read = ReadRules({}, {{"NOWCALLS_RULES", "x=1.json, shop=" + url + ", y=2.json"}});
  REQUIRE(read.status().ToString() == "ok");
  CHECK(read->config.rules == std::vector<RuleFile>{{"x", "1.json"}, {"y", "2.json"}});
  REQUIRE(read->config.rule_urls.size() == 1);
  CHECK(read->config.rule_urls[0].url == url);
  CHECK(DescribeSettings(*read).find("x=1.json,y=2.json,shop=" + url) != std::string::npos);
}

TEST_CASE("a URL that no start accepts is refused, with what to do") {
  const struct {
    std::string url;
    std::string told;
  } cases[] = {
      {"ftp://a/b", "takes URLs that begin with etcd://, etcds://, http:// or https://"},
      {"etcd://a:1", "must be etcd://HOST:PORT,HOST:PORT/KEY, or etcds:// for TLS"},
      {"etcd://a:1/", "names no key"},
      {"etcd://a/k", "is not HOST:PORT"},
      {"http:///b", "names no host"},
      {"http://a/b#c", "has a fragment (#)"},
      {"http://a/b c", "write %20"},
      {"http://a/\xc3\xa4", "write %20"},
      {"http://a/" + std::string(2048, 'x'), "of more than 2048 bytes"},
  };
  for (const auto& wrong : cases) {
    CAPTURE(wrong.url);
    const std::string error = RuleErrorOf({"--rules=shop=" + wrong.url});
    CAPTURE(error);
    CHECK(error.starts_with("flag --rules: "));
    CHECK(error.find(wrong.told) != std::string::npos);
  }
  CHECK(RuleErrorOf({"--rules=a=http://h/x", "--rules=b=http://h/x"}).find("two namespaces") !=
        std::string::npos);
  CHECK(RuleErrorOf({"--rules=a=http://h/x", "--rules=a=f.json"}).find("two files for") !=
        std::string::npos);
  std::vector<std::string> many;
  for (size_t i = 0; i <= kRuleUrlsMax; ++i) {
    many.push_back("--rules=n" + std::to_string(i) + "=http://h/" + std::to_string(i));
  }
  CHECK(RuleErrorOf(many) == "flag --rules: names 65 URLs, and a server asks 64");
}

TEST_CASE("a secret in a URL is refused, and not repeated") {
  for (const char* url : {"http://u:deep@a/b", "etcd://u:deep@a:1/k", "https://a/b?token=deep",
                          "https://a/b?raw&accessToken=deep", "https://a/b?x=1&client_SECRET=deep",
                          "https://a/?Password=deep&y"}) {
    const std::string error = RuleErrorOf({std::string("--rules=shop=") + url});
    CAPTURE(error);
    CHECK(error.find("which log and ledger would show") != std::string::npos);
    CHECK(error.find("deep") == std::string::npos);
  }
  CHECK(ReadRules({"--rules=shop=https://a/token/b@c?tenant=x"}).ok());
}

TEST_CASE("settings of URLs have ranges, and need such a URL") {
  CHECK(ReadRules({})->config.rule_http.poll_ms == 10'000);
  CHECK(ReadRules({"--rules-poll-ms=1000"})->config.rule_http.poll_ms == 1'000);
  CHECK(RuleErrorOf({"--rules-poll-ms=999"}).find("must be an integer from 1000 to 3600000") !=
        std::string::npos);
  const std::string http = "--rules=http://a/b";
  const std::string etcd = "--rules=etcd://a:1/b";
  CHECK(RuleErrorOf({http, "--rules-ca=c"}) == "rules-ca needs rules at https://");
  CHECK(RuleErrorOf({etcd, "--rules-header-file=h"}) ==
        "rules-header-file needs rules at http:// or https://");
  CHECK(ReadRules({"--rules=https://a/b", "--rules-ca=c", "--rules-header-file=h"}).ok());
  // As whom etcd is asked for rules is said by the cluster's settings.
  CHECK(ReadRules({"--rules=etcds://a:1/b", "--cluster-ca=c", "--cluster-user=u",
                   "--cluster-password-file=p"})
            .ok());
  CHECK(RuleErrorOf({etcd, "--cluster-ca=c"}) ==
        "cluster-ca or cluster-cert needs an etcd with etcds://");
  CHECK(RuleErrorOf({http, "--cluster-user=u", "--cluster-password-file=p"}) ==
        "cluster-user needs cluster, or rules in etcd");
}

}  // namespace
}  // namespace nowcalls::server
