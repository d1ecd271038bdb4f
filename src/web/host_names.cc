#include "web/host_names.h"

#include <algorithm>

#include "net/address.h"
#include "web/http.h"
#include "web/sentinel/host_name.h"

namespace nowcalls::web {
namespace {

bool IsLoopbackDigits(const std::string& digits) {
  const Result<net::SocketAddress> address = net::Resolve({digits, 0});
  return address.ok() && net::IsLoopback(*address);
}

}  // namespace

HostNames::HostNames(const HostPort& listen, const std::vector<HostPort>& addresses,
                     const std::vector<std::string>& more)
    : names_{"localhost", "127.0.0.1", "::1", SmallLetters(listen.host)},
      any_digits_(
          !std::all_of(addresses.begin(), addresses.end(),
                       [](const HostPort& address) { return IsLoopbackDigits(address.host); })),
      shown_("http://" + addresses.front().ToString() + "/") {
  // Addresses are those of the sockets; the name that was configured may stand for several.
  for (const HostPort& address : addresses) names_.insert(address.host);
  for (const std::string& name : more) names_.insert(SmallLetters(name));
  if (any_digits_) names_.insert(SmallLetters(HostName()));
}

bool HostNames::Has(const std::string& host) const {
  return names_.contains(host) || (any_digits_ && net::AddressInDigits(host).has_value());
}

std::string HostNames::Refusal() const {
  return "this server does not answer under the name in the Host header, which guards its page "
         "against other sites: ask " +
         shown_ + ", or name the host in http-hosts";
}

}  // namespace nowcalls::web
