// The table of settings. Flag --data-dir, variable NOWCALLS_DATA_DIR and TOML key data_dir are one
// setting.
//
// Thread: any; it never changes.
#ifndef NOWCALLS_SERVER_CONFIG_SETTINGS_H_
#define NOWCALLS_SERVER_CONFIG_SETTINGS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "server/config/config.h"

namespace nowcalls::server {

// In TOML. Flags and environment give text.
enum class SettingKind {
  kText,
  kInteger,
  kNumber,  // A TOML integer or float.
  kSwitch,  // A flag without a value; true or false elsewhere.
  kList,    // A repeatable flag; separated by commas in the environment; a TOML array of strings.
  kTable,   // The same of NAME=N; a TOML table of integers.
};

struct Setting {
  std::string_view name;
  std::string_view group;       // Heading in --help.
  std::string_view value_name;  // "HOST:PORT"
  std::string_view doc;         // One line of at most 74 bytes, so that --help has 80 columns.
  std::string_view more;        // Markdown; the manual shows it behind `doc`. Often empty.
  SettingKind kind;
  std::string range = {};  // "1 to 60000"; empty: `doc` names the values.
  // Parses and stores; kList takes any number. kInvalidArgument completes a sentence that begins
  // with the name: "must be text or json, got 'xml'".
  std::function<Status(const std::vector<std::string>& values, ServerConfig* config)> set = {};
  // Copies a live setting while the server runs. Empty: a change needs a restart.
  std::function<void(const ServerConfig& from, ServerConfig* to)> apply = {};
  // In a form that `set` reads.
  std::function<std::string(const ServerConfig& config)> get = {};

  bool is_live() const { return apply != nullptr; }
  std::string flag() const;         // "--data-dir"
  std::string environment() const;  // "NOWCALLS_DATA_DIR"
  std::string toml_key() const;     // "data_dir"
};

const std::vector<Setting>& Settings();

// Position in Settings(), or -1.
int FindTomlKey(std::string_view key);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_SETTINGS_H_
