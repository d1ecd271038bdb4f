// Settings of rules: where they are, and how URLs are asked.
//
// Thread: any; pure.
#ifndef NOWCALLS_SERVER_CONFIG_RULE_SETTINGS_H_
#define NOWCALLS_SERVER_CONFIG_RULE_SETTINGS_H_

#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/config/settings.h"

namespace nowcalls::server {

void AddRuleSettings(std::string_view group, std::vector<Setting>* table);

// kInvalidArgument: settings that do not go together, with what to do.
Status CheckRuleSettings(const ServerConfig& config);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_RULE_SETTINGS_H_
