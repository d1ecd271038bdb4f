// ConfigChanges: effects of a configuration that was read again.
//
// Thread: any; pure.
#ifndef NOWCALLS_SERVER_CONFIG_CONFIG_CHANGES_H_
#define NOWCALLS_SERVER_CONFIG_CONFIG_CHANGES_H_

#include <string>
#include <vector>

#include "server/config/config.h"

namespace nowcalls::server {

struct ConfigChanges {
  // "sweep-interval-ms is 50 now, and was 100", in the order of Settings().
  std::vector<std::string> applied;
  // Settings that need a restart.
  std::vector<std::string> need_restart;
};

// Copies the live settings of `read` into `running`. `at_start`: as the start read it, before it
// made paths absolute and lowered limits.
ConfigChanges ApplyLiveSettings(const ServerConfig& at_start, const ServerConfig& read,
                                ServerConfig* running);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_CONFIG_CHANGES_H_
