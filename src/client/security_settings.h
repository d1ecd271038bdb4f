// SecuritySettings: what the tools are told of TLS and secrets, by options and the environment.
//
// Thread: any.
#ifndef NOWCALLS_CLIENT_SECURITY_SETTINGS_H_
#define NOWCALLS_CLIENT_SECURITY_SETTINGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "client/dial.h"
#include "nowcalls/status.h"

namespace nowcalls::client {

// Empty: not said.
struct SecuritySettings {
  std::string tls{};  // "on" or "off".
  std::string ca{};
  std::string certificate{};
  std::string key{};
  std::string server_name{};
  std::string secret_file{};
};

// One of them. A secret itself is none: ps(1) shows options.
struct SecuritySetting {
  const char* option;
  const char* variable;  // Of the environment. Null: none.
  const char* type;      // Of the option's value. Null: it has none, and says "on".
  const char* help;
  std::string SecuritySettings::*value;
};
inline constexpr SecuritySetting kSecuritySettings[] = {
    {"--tls", "NOWCALLS_TLS", nullptr, "Speak TLS; the variable says on or off",
     &SecuritySettings::tls},
    {"--tls-ca", "NOWCALLS_TLS_CA", "FILE",
     "PEM file of the authorities that the server's certificate is checked by, with --tls "
     "[the system's]",
     &SecuritySettings::ca},
    {"--tls-cert", "NOWCALLS_TLS_CERT", "FILE",
     "PEM file of the certificate that is shown to the server, with --tls",
     &SecuritySettings::certificate},
    {"--tls-key", "NOWCALLS_TLS_KEY", "FILE", "PEM file of its key", &SecuritySettings::key},
    {"--tls-server-name", nullptr, "NAME",
     "The server's certificate must have it, with --tls [the host of the address]",
     &SecuritySettings::server_name},
    {"--secret-file", "NOWCALLS_SECRET_FILE", "FILE",
     "File whose first line is the secret by which the server knows the client; nobody else may "
     "read it",
     &SecuritySettings::secret_file},
};

SecuritySettings SecurityOfEnvironment();

// Options beat the environment. Those of TLS turn it on. Reads the files. kInvalidArgument: names
// the option or variable.
Result<Security> ReadSecurity(const SecuritySettings& options, const SecuritySettings& environment);

// Adds the options; returns them.
inline std::vector<CLI::Option*> AddSecurityOptions(CLI::App* app, SecuritySettings* settings) {
  std::vector<CLI::Option*> options;
  for (const SecuritySetting& setting : kSecuritySettings) {
    std::string help = setting.help;
    if (setting.variable != nullptr) help += " [$" + std::string(setting.variable) + "]";
    std::string* const value = &(settings->*setting.value);
    options.push_back(setting.type == nullptr
                          ? app->add_flag_callback(
                                setting.option, [value] { *value = "on"; }, help)
                          : app->add_option(setting.option, *value, help)->type_name(setting.type));
  }
  return options;
}

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_SECURITY_SETTINGS_H_
