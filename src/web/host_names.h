// HostNames: under which names an HTTP server answers.
//
// Thread: any; it never changes. A page from elsewhere reads a server of the browser's network by
// DNS rebinding: its own name then has the server's address. The Host header still has the name, by
// which it is refused. An address in digits cannot be rebound.
#ifndef NOWCALLS_WEB_HOST_NAMES_H_
#define NOWCALLS_WEB_HOST_NAMES_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"

namespace nowcalls::web {

class HostNames {
 public:
  // Of a server that was told to listen at `listen`, and does at `addresses`, of which there is at
  // least one; `more` are the operator's. On loopback addresses these are all, with "localhost". A
  // server that others reach also has this machine's name, and every address in digits, since
  // forwarded ports and proxies ask by addresses that it does not know.
  HostNames(const HostPort& listen, const std::vector<HostPort>& addresses,
            const std::vector<std::string>& more);

  // `host` as HostOf has it.
  bool Has(const std::string& host) const;
  // What a request under another name is told.
  std::string Refusal() const;

 private:
  std::set<std::string> names_;
  bool any_digits_ = false;
  std::string shown_;  // Under which it surely answers.
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HOST_NAMES_H_
