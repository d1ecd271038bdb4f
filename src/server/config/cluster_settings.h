// Settings of a cluster, and what they may be together.
//
// Thread: any; pure.
#ifndef NOWCALLS_SERVER_CONFIG_CLUSTER_SETTINGS_H_
#define NOWCALLS_SERVER_CONFIG_CLUSTER_SETTINGS_H_

#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/config/settings.h"

namespace nowcalls::server {

void AddClusterSettings(std::vector<Setting>* table);

// kInvalidArgument: settings that do not go together, with what to do.
Status CheckClusterSettings(const ServerConfig& config);

// HOST:PORT at which clients reach a member. REQUIRES: CheckClusterSettings.
std::string AdvertisedAddress(const ServerConfig& config);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_CLUSTER_SETTINGS_H_
