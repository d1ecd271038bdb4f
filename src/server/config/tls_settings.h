// Settings of TLS, and what they may be together.
//
// Thread: any; pure.
#ifndef NOWCALLS_SERVER_CONFIG_TLS_SETTINGS_H_
#define NOWCALLS_SERVER_CONFIG_TLS_SETTINGS_H_

#include <vector>

#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/config/settings.h"

namespace nowcalls::server {

void AddTlsSettings(std::vector<Setting>* table);

// kInvalidArgument: settings that do not go together, with what to do.
Status CheckTlsSettings(const ServerConfig& config);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_TLS_SETTINGS_H_
