#include "server/config/cluster_settings.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "server/config/config.h"

namespace nowcalls::server {
namespace {

Result<Invocation> ReadCluster(const std::vector<std::string>& flags) {
  std::vector<const char*> argv = {"nowcalls-server"};
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  return ReadInvocation(static_cast<int>(argv.size()), argv.data(), {});
}

std::string ClusterErrorOf(const std::vector<std::string>& flags) {
  return ReadCluster(flags).status().message();
}

const std::string kUrl = "--cluster=etcd://a:2379,[::1]:2/p/q";

TEST_CASE("where a cluster's log is, and where its member is reached") {
  const auto read = ReadCluster({kUrl, "--listen=127.0.0.1:7"});
  REQUIRE(read.status().ToString() == "ok");
  const ClusterChoice& cluster = read->config.cluster;
  CHECK(cluster.on());
  CHECK(cluster.endpoints == std::vector<HostPort>{{"a", 2379}, {"::1", 2}});
  CHECK(cluster.prefix == "/p/q");
  CHECK_FALSE(cluster.tls);
  CHECK(AdvertisedAddress(read->config) == "127.0.0.1:7");
  const auto other =
      ReadCluster({"--cluster=etcds://a:1/p", "--cluster-advertise=b:9", "--cluster-ca=ca.pem",
                   "--cluster-user=u", "--cluster-password-file=w", "--listen=127.0.0.1:0"});
  REQUIRE(other.status().ToString() == "ok");
  CHECK(other->config.cluster.tls);
  CHECK(AdvertisedAddress(other->config) == "b:9");
  CHECK_FALSE(ReadCluster({})->config.cluster.on());
}

TEST_CASE("a URL that is none of a cluster's is refused") {
  for (const char* url : {"etcd:/a:1/p", "http://a:1/p", "etcd://a:1", "etcd://a/p", "etcd:///p",
                          "etcd://a:1,/p", "etcd://a:1/", "etcd://a:1/ p", "etcds://a:1"}) {
    CHECK_MESSAGE(!ReadCluster({std::string("--cluster=") + url}).ok(), url);
  }
}

TEST_CASE("settings of a cluster that do not go together are refused, with what to do") {
  CHECK(ClusterErrorOf({"--cluster-advertise=a:1"}) == "cluster-advertise needs cluster");
  CHECK(ClusterErrorOf({"--cluster-user=u", "--cluster-password-file=w"}) ==
        "cluster-user needs cluster, or rules in etcd");
  CHECK(ClusterErrorOf({"--cluster-ca=c"}) ==
        "cluster-ca or cluster-cert needs cluster, or rules in etcd");
  CHECK(ClusterErrorOf({kUrl, "--cluster-ca=c"}) ==
        "cluster-ca or cluster-cert needs an etcd with etcds://");
  CHECK(ClusterErrorOf({"--cluster=etcds://a:1/p", "--cluster-cert=c"}) ==
        "cluster-cert and cluster-key need each other");
  CHECK(ClusterErrorOf({kUrl, "--cluster-user=u"}) ==
        "cluster-user and cluster-password-file need each other");
  CHECK(ClusterErrorOf({kUrl, "--durability=none"}).find("leave the setting out") !=
        std::string::npos);
  CHECK(ClusterErrorOf({kUrl, "--listen=0.0.0.0:7", "--insecure-listen"})
            .find("cluster-advertise must say") != std::string::npos);
  CHECK(ClusterErrorOf({kUrl, "--listen=127.0.0.1:0"}).find("cluster-advertise must say") !=
        std::string::npos);
  CHECK_FALSE(ReadCluster({"--cluster-log-bytes-max=5"}).ok());
}

}  // namespace
}  // namespace nowcalls::server
