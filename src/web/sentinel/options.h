// Options of Sentinel's dashboard.
//
// Thread: plain values.
#ifndef NOWCALLS_WEB_SENTINEL_OPTIONS_H_
#define NOWCALLS_WEB_SENTINEL_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/host_port.h"

namespace nowcalls::web {

struct SentinelDashboardOptions {
  // Ports tried above a taken one, as Sentinel's clients do.
  static constexpr uint16_t kPortsAbove = 20;
  static constexpr size_t kAppBytesMax = 128;

  HostPort dashboard{};                // An empty host: there is no dashboard.
  HostPort listen{"127.0.0.1", 8719};  // Of the command centre.
  std::string app = "nowcalls";        // Under this name the dashboard lists the server.
  // In digits, those that may ask the command centre. Empty: all.
  std::vector<std::string> peers{};
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_OPTIONS_H_
