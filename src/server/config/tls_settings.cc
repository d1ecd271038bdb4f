#include "server/config/tls_settings.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "access/network.h"
#include "server/config/setting_values.h"

namespace nowcalls::server {
namespace {

constexpr std::string_view kTls = "TLS";
constexpr std::string_view kOff = "off";
constexpr std::string_view kLoopback = "loopback";

using Files = net::TlsServerFiles;
using Clients = net::ClientCertificates;

Setting FileSetting(std::string_view name, std::string_view doc, std::string_view more,
                    std::string Files::*member) {
  Setting setting{name, kTls, "FILE", doc, more, SettingKind::kText};
  setting.set = [=](const std::vector<std::string>& values, ServerConfig* config) {
    config->tls.*member = values.front();
    return Status::Ok();
  };
  setting.get = [=](const ServerConfig& config) { return config.tls.*member; };
  return setting;
}

std::string_view ClientsWord(Clients clients) {
  switch (clients) {
    case Clients::kOff: return kOff;
    case Clients::kOptional: return "optional";
    case Clients::kRequired: return "required";
  }
  return "";
}

Status ParseClients(const std::vector<std::string>& values, ServerConfig* config) {
  for (const Clients clients : {Clients::kOff, Clients::kOptional, Clients::kRequired}) {
    if (values.front() != ClientsWord(clients)) continue;
    config->tls.clients = clients;
    return Status::Ok();
  }
  return MustBe("off, optional or required", values.front());
}

Status ParseVersion(const std::vector<std::string>& values, ServerConfig* config) {
  if (values.front() != "1.2" && values.front() != "1.3") {
    return MustBe("1.2 or 1.3", values.front());
  }
  config->tls.version = values.front() == "1.2" ? net::TlsVersion::k12 : net::TlsVersion::k13;
  return Status::Ok();
}

Status ParsePlain(const std::vector<std::string>& values, ServerConfig* config) {
  PlainChoice plain;
  for (const std::string& value : values) {
    plain.values.push_back(value);
    if (value == kOff) continue;
    if (value == kLoopback) {
      plain.loopback = true;
      continue;
    }
    const Result<access::Network> network = access::ParseNetwork(value);
    if (!network.ok()) {
      return Status::InvalidArgument("must be off, loopback or a network; a network " +
                                     network.status().message());
    }
    plain.networks.push_back(*network);
  }
  if (values.size() > 1 && std::find(values.begin(), values.end(), kOff) != values.end()) {
    return Status::InvalidArgument("says off, and something else: leave one out");
  }
  config->plain = std::move(plain);
  return Status::Ok();
}

}  // namespace

void AddTlsSettings(std::vector<Setting>* table) {
  table->push_back(FileSetting(
      "tls-cert", "PEM file of the server's certificate, then its chain. Turns TLS on.",
      "Read again when it changes, and at SIGHUP; see [security](operating.md#security).",
      &Files::certificate));
  table->push_back(FileSetting("tls-key", "PEM file of its key, without a passphrase.",
                               "It may be the file of the certificate.", &Files::key));
  table->push_back(FileSetting("tls-client-ca",
                               "PEM file of the CAs whose client certificates are believed.", "",
                               &Files::client_ca));
  Setting clients{"tls-client",
                  kTls,
                  "MODE",
                  "Client certificates: off, optional or required.",
                  "Optional: one that is shown must be good.",
                  SettingKind::kText};
  clients.set = ParseClients;
  clients.get = [](const ServerConfig& c) { return std::string(ClientsWord(c.tls.clients)); };
  table->push_back(std::move(clients));
  Setting version{"tls-min", kTls,
                  "VERSION", "Oldest version of TLS that is spoken: 1.2 or 1.3.",
                  "",        SettingKind::kText};
  version.set = ParseVersion;
  version.get = [](const ServerConfig& c) {
    return c.tls.version == net::TlsVersion::k12 ? "1.2" : "1.3";
  };
  table->push_back(std::move(version));
  Setting plain{"plain",
                kTls,
                "WHOSE",
                "Connections without TLS: off, loopback or a NETWORK; repeatable.",
                "Without it: loopback where TLS is on, all else. The socket in the data directory "
                "is always plain. Sentinel's clients speak no TLS, so name their network, and "
                "loopback if tools of this machine use the port.",
                SettingKind::kList};
  plain.set = ParsePlain;
  plain.get = [](const ServerConfig& c) { return ListText(c.plain.values); };
  table->push_back(std::move(plain));
}

Status CheckTlsSettings(const ServerConfig& config) {
  const Files& tls = config.tls;
  if (tls.certificate.empty() != tls.key.empty()) {
    const bool has_key = tls.certificate.empty();
    return Status::InvalidArgument(std::string(has_key ? "tls-key" : "tls-cert") + " is set, and " +
                                   (has_key ? "tls-cert" : "tls-key") +
                                   " is not: TLS needs both. Set both, or neither");
  }
  const bool on = !tls.certificate.empty();
  const bool asks = tls.clients != Clients::kOff;
  if (!on && (asks || !tls.client_ca.empty())) {
    return Status::InvalidArgument(std::string(asks ? "tls-client" : "tls-client-ca") +
                                   " is set, and TLS is off: set tls-cert and tls-key, too");
  }
  if (asks && tls.client_ca.empty()) {
    return Status::InvalidArgument("tls-client is " + std::string(ClientsWord(tls.clients)) +
                                   ", and tls-client-ca is not set: set it to a PEM file of the "
                                   "CAs that sign client certificates");
  }
  if (!asks && !tls.client_ca.empty()) {
    return Status::InvalidArgument(
        "tls-client-ca is set, and tls-client is off, so nobody is asked for a certificate: set "
        "tls-client to optional or required, or leave tls-client-ca out");
  }
  const PlainChoice& plain = config.plain;
  if (!on && !plain.values.empty() && !plain.loopback && plain.networks.empty()) {
    return Status::InvalidArgument(
        "plain is off, and TLS is off, too, so nobody could connect to the port: set tls-cert and "
        "tls-key, or leave plain out");
  }
  return Status::Ok();
}

}  // namespace nowcalls::server
