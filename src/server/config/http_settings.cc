#include "server/config/http_settings.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/host_port.h"
#include "base/text.h"
#include "net/address.h"
#include "server/config/setting_values.h"

namespace nowcalls::server {
namespace {

bool IsHostName(std::string_view text) {
  constexpr std::string_view kOthers = "-._";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

}  // namespace

Status ParseHttp(const std::string& text, ServerConfig* config) {
  config->http.reset();
  if (text.empty()) return Status::Ok();
  Result<HostPort> parsed = ParseHostPort(text);
  if (!parsed.ok()) return parsed.status();
  config->http = *std::move(parsed);
  return Status::Ok();
}

Status ParseHttpHosts(const std::vector<std::string>& values, ServerConfig* config) {
  std::vector<std::string> hosts;
  for (const std::string& value : values) {
    // Addresses in one spelling, as requests are compared.
    const std::optional<std::string> address = net::AddressInDigits(value);
    if (!address && !IsHostName(value)) {
      return Status::InvalidArgument(
          "must be a host name or an address in digits, without a port, got " + Quoted(value));
    }
    hosts.push_back(address.value_or(value));
  }
  config->http_hosts = std::move(hosts);
  return Status::Ok();
}

std::string ShowHttpHosts(const ServerConfig& config) { return ListText(config.http_hosts); }

Status ParseHttpMetrics(const std::string& text, ServerConfig* config) {
  if (text != "open" && text != "access") {
    return Status::InvalidArgument("must be open or access, got " + Quoted(text));
  }
  config->http_metrics_open = text == "open";
  return Status::Ok();
}

std::string ShowHttpMetrics(const ServerConfig& config) {
  return config.http_metrics_open ? "open" : "access";
}

Status ParseDashboard(const std::string& text, ServerConfig* config) {
  // Empty: no dashboard, and nothing listens for its commands.
  config->sentinel.dashboard = {};
  if (text.empty()) return Status::Ok();
  Result<HostPort> parsed = ParseHostPort(text);
  if (!parsed.ok()) return parsed.status();
  config->sentinel.dashboard = *std::move(parsed);
  return Status::Ok();
}

Status ParseCommandListen(const std::string& text, ServerConfig* config) {
  Result<HostPort> parsed = ParseHostPort(text);
  if (!parsed.ok()) return parsed.status();
  config->sentinel.listen = *std::move(parsed);
  return Status::Ok();
}

Status ParseApp(const std::string& text, ServerConfig* config) {
  NOWCALLS_RETURN_IF_ERROR(CheckName(text, web::SentinelDashboardOptions::kAppBytesMax));
  config->sentinel.app = text;
  return Status::Ok();
}

Status ParseCommandPeers(const std::vector<std::string>& values, ServerConfig* config) {
  std::vector<std::string> peers;
  for (const std::string& value : values) {
    std::optional<std::string> address = net::AddressInDigits(value);
    if (!address) {
      return Status::InvalidArgument("must be an address in digits, got " + Quoted(value));
    }
    peers.push_back(*std::move(address));
  }
  config->sentinel.peers = std::move(peers);
  return Status::Ok();
}

std::string ShowCommandPeers(const ServerConfig& config) { return ListText(config.sentinel.peers); }

}  // namespace nowcalls::server
