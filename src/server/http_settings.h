// The values of settings of HTTP and of Sentinel's dashboard.
//
// Thread: any; pure. Errors are kInvalidArgument and say what is wrong with the value; the caller
// adds where it stands.
#ifndef NOWCALLS_SERVER_HTTP_SETTINGS_H_
#define NOWCALLS_SERVER_HTTP_SETTINGS_H_

#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "server/config.h"

namespace nowcalls::server {

Status ParseHttp(const std::string& text, ServerConfig* config);
Status ParseHttpHosts(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowHttpHosts(const ServerConfig& config);

Status ParseDashboard(const std::string& text, ServerConfig* config);
Status ParseCommandListen(const std::string& text, ServerConfig* config);
Status ParseApp(const std::string& text, ServerConfig* config);
Status ParseCommandPeers(const std::vector<std::string>& values, ServerConfig* config);
std::string ShowCommandPeers(const ServerConfig& config);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_HTTP_SETTINGS_H_
