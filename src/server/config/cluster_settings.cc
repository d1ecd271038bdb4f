#include "server/config/cluster_settings.h"

#include <string_view>
#include <utility>

#include "base/text.h"
#include "cluster/keys.h"
#include "server/config/etcd_url.h"
#include "server/config/setting_values.h"

namespace nowcalls::server {
namespace {

constexpr std::string_view kCluster = "Cluster";
constexpr uint64_t kLogBytesMin = 16 << 20;
constexpr uint64_t kLogBytesMax = uint64_t{4} << 30;

Status ParseCluster(const std::vector<std::string>& values, ServerConfig* config) {
  ClusterChoice& cluster = config->cluster;
  cluster.url = values.front();
  cluster.endpoints.clear();
  if (cluster.url.empty()) return Status::Ok();
  Result<EtcdUrl> url = ParseEtcdUrl(cluster.url, "PREFIX");
  if (!url.ok()) return url.status();
  const Result<cluster::Keys> keys = cluster::Keys::Under(url->path);
  if (!keys.ok()) return Status::InvalidArgument("is refused: " + keys.status().message());
  cluster.endpoints = std::move(url->endpoints);
  cluster.tls = url->tls;
  cluster.prefix = std::move(url->path);
  return Status::Ok();
}

Status ParseAdvertise(const std::vector<std::string>& values, ServerConfig* config) {
  config->cluster.advertise.reset();
  if (values.front().empty()) return Status::Ok();
  Result<HostPort> parsed = ParseHostPort(values.front());
  if (!parsed.ok()) return parsed.status();
  if (parsed->port == 0) return MustBe("HOST:PORT with a port above 0", values.front());
  config->cluster.advertise = *std::move(parsed);
  return Status::Ok();
}

Status ParseLogBytes(const std::vector<std::string>& values, ServerConfig* config) {
  uint64_t bytes = 0;
  if (!ParseNumber(values.front(), &bytes) || bytes < kLogBytesMin || bytes > kLogBytesMax) {
    return MustBe(
        "an integer from " + std::to_string(kLogBytesMin) + " to " + std::to_string(kLogBytesMax),
        values.front());
  }
  config->cluster.log_bytes_max = bytes;
  return Status::Ok();
}

Setting TextSetting(std::string_view name, std::string_view value_name, std::string_view doc,
                    std::string_view more, std::string ClusterChoice::*member) {
  Setting setting{name, kCluster, value_name, doc, more, SettingKind::kText};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    config->cluster.*member = values.front();
    return Status::Ok();
  };
  setting.get = [=](const ServerConfig& config) { return config.cluster.*member; };
  return setting;
}

bool IsAnyAddress(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

Status Needs(std::string_view setting, std::string_view what) {
  return Status::InvalidArgument(std::string(setting) + " needs " + std::string(what));
}

// Of the connections to etcd, which also has rules.
Status CheckEtcdSettings(const ServerConfig& config) {
  const ClusterChoice& cluster = config.cluster;
  bool asked = cluster.on();
  bool tls = cluster.tls;
  for (const RuleUrl& url : config.rule_urls) {
    if (!url.etcd) continue;
    asked = true;
    tls = tls || url.etcd->tls;
  }
  const bool has_files = !cluster.ca_file.empty() || !cluster.certificate_file.empty();
  if (has_files && !asked) return Needs("cluster-ca or cluster-cert", "cluster, or rules in etcd");
  if (has_files && !tls) return Needs("cluster-ca or cluster-cert", "an etcd with etcds://");
  if (!cluster.user.empty() && !asked) return Needs("cluster-user", "cluster, or rules in etcd");
  if (cluster.certificate_file.empty() != cluster.key_file.empty()) {
    return Status::InvalidArgument("cluster-cert and cluster-key need each other");
  }
  if (cluster.user.empty() != cluster.password_file.empty()) {
    return Status::InvalidArgument("cluster-user and cluster-password-file need each other");
  }
  return Status::Ok();
}

}  // namespace

void AddClusterSettings(std::vector<Setting>* table) {
  Setting url = TextSetting("cluster", "URL", "etcd://HOST:PORT,.../PREFIX of the cluster's log.",
                            "Servers with the same PREFIX are members of one cluster. etcds:// is "
                            "with TLS. See [cluster](cluster.md).",
                            &ClusterChoice::url);
  url.set = ParseCluster;
  table->push_back(std::move(url));
  Setting advertise{"cluster-advertise",
                    kCluster,
                    "HOST:PORT",
                    "Where clients and other members reach this server.",
                    "Without it: the first address of `--listen`.",
                    SettingKind::kText};
  advertise.set = ParseAdvertise;
  advertise.get = [](const ServerConfig& c) {
    return c.cluster.advertise ? c.cluster.advertise->ToString() : std::string();
  };
  table->push_back(std::move(advertise));
  Setting bytes{"cluster-log-bytes-max",
                kCluster,
                "N",
                "Bytes of the log in etcd, beyond which it forgets what a member lacks.",
                "That member then takes a copy of the ledger. etcd needs about four times as much.",
                SettingKind::kInteger,
                std::to_string(kLogBytesMin) + " to " + std::to_string(kLogBytesMax)};
  bytes.set = ParseLogBytes;
  bytes.get = [](const ServerConfig& c) { return std::to_string(c.cluster.log_bytes_max); };
  table->push_back(std::move(bytes));
  table->push_back(TextSetting("cluster-peer-ca", "FILE",
                               "PEM file of the CAs of the members' own certificates.",
                               "For copies of the ledger, with `--tls-cert`. Without it: those of "
                               "the machine.",
                               &ClusterChoice::peer_ca_file));
  table->push_back(TextSetting("cluster-ca", "FILE",
                               "PEM file of the CAs that etcd is believed by.",
                               "Without it: those of the machine. This and the next four are also "
                               "for [rules in etcd](rule-sources.md#etcd), with or without a "
                               "cluster.",
                               &ClusterChoice::ca_file));
  table->push_back(TextSetting("cluster-cert", "FILE", "PEM file of a certificate for etcd.", "",
                               &ClusterChoice::certificate_file));
  table->push_back(
      TextSetting("cluster-key", "FILE", "PEM file of its key.", "", &ClusterChoice::key_file));
  table->push_back(TextSetting("cluster-user", "NAME", "User of etcd.", "", &ClusterChoice::user));
  table->push_back(TextSetting("cluster-password-file", "FILE", "File with the user's password.",
                               "Its first line.", &ClusterChoice::password_file));
}

Status CheckClusterSettings(const ServerConfig& config) {
  NOWCALLS_RETURN_IF_ERROR(CheckEtcdSettings(config));
  const ClusterChoice& cluster = config.cluster;
  if (!cluster.on()) {
    return cluster.advertise ? Needs("cluster-advertise", "cluster") : Status::Ok();
  }
  if (config.durability.mode != store::Durability::kSync) {
    return Status::InvalidArgument(
        "durability is of a single server: in a cluster a batch is durable once etcd has it, so "
        "leave the setting out");
  }
  const HostPort& listen = config.listen.front();
  if (!cluster.advertise && (listen.port == 0 || IsAnyAddress(listen.host))) {
    return Status::InvalidArgument("cluster-advertise must say where clients reach this server: " +
                                   Quoted(listen.ToString()) + " tells them nothing");
  }
  return Status::Ok();
}

std::string AdvertisedAddress(const ServerConfig& config) {
  return config.cluster.advertise.value_or(config.listen.front()).ToString();
}

}  // namespace nowcalls::server
