// SecuritySettings: TLS and secrets of the tools, by options and the environment.
//
// Thread: any.
#ifndef NOWCALLS_CLIENT_SECURITY_SETTINGS_H_
#define NOWCALLS_CLIENT_SECURITY_SETTINGS_H_

#include <sys/stat.h>

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
  const char* variable;  // Of the environment; empty: none.
  const char* type;      // Of the option's value; empty: it has none, and says "on".
  const char* help;
  const char* otherwise;
  std::string SecuritySettings::*value;

  std::string Help() const {
    const std::string name = *variable == '\0' ? "" : "$" + std::string(variable) + ", else ";
    return std::string(help) + " [" + name + otherwise + "]";
  }
};
inline constexpr SecuritySetting kSecuritySettings[] = {
    {"--tls", "NOWCALLS_TLS", "", "Speak TLS; the variable says on or off",
     "if another option of TLS is given", &SecuritySettings::tls},
    {"--tls-ca", "NOWCALLS_TLS_CA", "FILE",
     "PEM file of the authorities that the server's certificate is checked by", "the system's",
     &SecuritySettings::ca},
    {"--tls-cert", "NOWCALLS_TLS_CLIENT_CERT", "FILE",
     "PEM file of the certificate that is shown to the server", "none",
     &SecuritySettings::certificate},
    {"--tls-key", "NOWCALLS_TLS_CLIENT_KEY", "FILE", "PEM file of its key", "none",
     &SecuritySettings::key},
    {"--tls-server-name", "", "NAME", "The server's certificate must have it",
     "the host of the address", &SecuritySettings::server_name},
    {"--secret-file", "NOWCALLS_SECRET_FILE", "FILE",
     "File whose first line is the secret by which the server knows the client; its owner alone "
     "may read it",
     "none", &SecuritySettings::secret_file},
};

// Whether the file is its owner's alone, or root's for one of `groups` to read.
bool IsSecretFile(const struct stat& info, const std::vector<gid_t>& groups);

SecuritySettings SecurityOfEnvironment();

// Options beat the environment. Those of TLS turn it on. Reads the files. kInvalidArgument: names
// the option or variable.
Result<Security> ReadSecurity(const SecuritySettings& options, const SecuritySettings& environment);

// Returns the added options. A template: the client library has no CLI11.
template <typename App>
auto AddSecurityOptions(App* app, SecuritySettings* settings) {
  std::vector<decltype(app->get_option(""))> options;
  for (const SecuritySetting& setting : kSecuritySettings) {
    std::string* const value = &(settings->*setting.value);
    options.push_back(
        *setting.type == '\0'
            ? app->add_flag_callback(
                  setting.option, [value] { *value = "on"; }, setting.Help())
            : app->add_option(setting.option, *value, setting.Help())->type_name(setting.type));
  }
  return options;
}

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_SECURITY_SETTINGS_H_
