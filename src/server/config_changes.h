// ConfigChanges: what a configuration that was read again changes in a running server.
//
// Thread: any; pure.
#ifndef NOWCALLS_SERVER_CONFIG_CHANGES_H_
#define NOWCALLS_SERVER_CONFIG_CHANGES_H_

#include <string>
#include <vector>

#include "server/config.h"

namespace nowcalls::server {

struct ConfigChanges {
  // "sweep-interval-ms is 50 now, and was 100", in the order of Settings().
  std::vector<std::string> applied;
  // Settings that have another value than at the start, and need a restart to have it.
  std::vector<std::string> need_restart;
};

// Puts the live settings of `read` into `running`, and nothing else. `at_start`: what the start
// read, of which `running` may differ, since the start makes paths absolute and lowers limits.
ConfigChanges ApplyLiveSettings(const ServerConfig& at_start, const ServerConfig& read,
                                ServerConfig* running);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_CHANGES_H_
