// Settings of HTTP and of Sentinel's dashboard, from and to text.
//
// Thread: any; pure. kInvalidArgument: the fault; the caller adds where.
#ifndef NOWCALLS_SERVER_CONFIG_HTTP_SETTINGS_H_
#define NOWCALLS_SERVER_CONFIG_HTTP_SETTINGS_H_

#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "server/config/config.h"

namespace nowcalls::server {

Status ParseHttp(const std::string& text, ServerConfig* config);
Status ParseHttpHosts(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowHttpHosts(const ServerConfig& config);
Status ParseHttpMetrics(const std::string& text, ServerConfig* config);
std::string ShowHttpMetrics(const ServerConfig& config);

Status ParseDashboard(const std::string& text, ServerConfig* config);
Status ParseCommandListen(const std::string& text, ServerConfig* config);
Status ParseApp(const std::string& text, ServerConfig* config);
Status ParseCommandPeers(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowCommandPeers(const ServerConfig& config);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_HTTP_SETTINGS_H_
