#include "server/config/etcd_url.h"

#include <cstddef>
#include <utility>

#include "server/config/setting_values.h"

namespace nowcalls::server {
namespace {

constexpr std::string_view kPlainScheme = "etcd://";
constexpr std::string_view kTlsScheme = "etcds://";

}  // namespace

bool IsEtcdUrl(std::string_view text) {
  return text.starts_with(kPlainScheme) || text.starts_with(kTlsScheme);
}

Result<EtcdUrl> ParseEtcdUrl(std::string_view text, std::string_view what) {
  EtcdUrl url;
  url.tls = text.starts_with(kTlsScheme);
  const size_t slash = text.find('/', kTlsScheme.size());
  if (!IsEtcdUrl(text) || slash == std::string_view::npos) {
    return MustBe("etcd://HOST:PORT,HOST:PORT/" + std::string(what) + ", or etcds:// for TLS",
                  text);
  }
  url.path = text.substr(slash);
  std::string_view rest =
      text.substr(0, slash).substr(url.tls ? kTlsScheme.size() : kPlainScheme.size());
  while (true) {
    const size_t comma = rest.find(',');
    Result<HostPort> endpoint = ParseHostPort(rest.substr(0, comma));
    if (!endpoint.ok()) return endpoint.status();
    url.endpoints.push_back(*std::move(endpoint));
    if (comma == std::string_view::npos) return url;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace nowcalls::server
