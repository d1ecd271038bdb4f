// The one table of settings: what can be configured, within which ranges, and how it is spelled.
//
// Thread: any; the table never changes. A setting "data-dir" is the flag --data-dir, the
// environment variable NOWCALLS_DATA_DIR and the TOML key data_dir.
#ifndef NOWCALLS_SERVER_SETTINGS_H_
#define NOWCALLS_SERVER_SETTINGS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "server/config.h"

namespace nowcalls::server {

// What a setting is in TOML; flags and the environment give text.
enum class SettingKind {
  kText,
  kInteger,
  kNumber,  // A TOML integer or float.
  kSwitch,  // A flag without a value; true or false elsewhere.
  kList,    // A repeatable flag; separated by commas in the environment; a TOML array of strings.
};

struct Setting {
  std::string_view name;
  std::string_view group;       // Heading in --help.
  std::string_view value_name;  // "HOST:PORT"
  std::string_view doc;         // One line.
  SettingKind kind;
  // Parses and stores; one value, or any number for kList. kInvalidArgument completes a sentence
  // that begins with the setting's name: "must be text or json, got 'xml'".
  std::function<Status(const std::vector<std::string>& values, ServerConfig* config)> set;
  // The value as `set` reads it, for display.
  std::function<std::string(const ServerConfig& config)> get;

  std::string flag() const;         // "--data-dir"
  std::string environment() const;  // "NOWCALLS_DATA_DIR"
  std::string toml_key() const;     // "data_dir"
};

const std::vector<Setting>& Settings();

// The position in Settings() of the setting with this TOML key, or -1.
int FindTomlKey(std::string_view key);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SETTINGS_H_
