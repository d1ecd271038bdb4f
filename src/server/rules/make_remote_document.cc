#include "server/rules/make_remote_document.h"

#include <utility>

#include "server/etcd/etcd_module.h"
#include "server/rules/etcd_document.h"
#include "server/rules/http_document.h"

namespace nowcalls::server {
namespace {

Result<std::unique_ptr<RemoteDocument>> MakeEtcdDocument(const ServerConfig& config,
                                                         const EtcdUrl& url) {
  const Result<ConnectEtcd> connect = LoadEtcdModule();
  if (!connect.ok()) return connect.status();
  Result<cluster::EtcdOptions> options = ReadEtcdOptions(config.cluster);
  if (!options.ok()) return options.status();
  options->endpoints = url.endpoints;
  options->tls = url.tls;
  options->answer_ms_max = EtcdDocument::kAnswerMsMax;
  return std::unique_ptr<RemoteDocument>(
      std::make_unique<EtcdDocument>((*connect)(*options), url.endpoints.size(), url.path));
}

}  // namespace

Result<std::unique_ptr<RemoteDocument>> MakeRemoteDocument(const ServerConfig& config,
                                                           const RuleUrl& url) {
  if (url.etcd) return MakeEtcdDocument(config, *url.etcd);
  Result<std::unique_ptr<HttpDocument>> document =
      HttpDocument::Make(url.url, {.poll_ms = config.rule_http.poll_ms,
                                   .ca_file = config.rule_http.ca_file,
                                   .header_file = config.rule_http.header_file});
  if (!document.ok()) return document.status();
  return std::unique_ptr<RemoteDocument>(*std::move(document));
}

}  // namespace nowcalls::server
