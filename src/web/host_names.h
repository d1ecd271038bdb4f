// HostNames: the names under which an HTTP server answers.
//
// Thread: any; it never changes.
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
  // `listen` as configured, `addresses` where it listens (at least one), `more` of the operator.
  // Beyond loopback this machine's name and every address in digits count, too.
  HostNames(const HostPort& listen, const std::vector<HostPort>& addresses,
            const std::vector<std::string>& more);

  // `host`: from HostOf.
  bool Has(const std::string& host) const;
  // For a 421.
  std::string Refusal() const;

 private:
  std::set<std::string> names_;
  bool any_digits_ = false;
  std::string shown_;  // Under which it surely answers.
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HOST_NAMES_H_
