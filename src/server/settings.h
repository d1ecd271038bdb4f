// The one table of settings: names, ranges, defaults and documentation.
//
// Thread: any; the table never changes. A setting "data-dir" is the flag --data-dir, the
// environment variable NOWCALLS_DATA_DIR and the TOML key data_dir. --help and the manual's page
// tools/manual/configuration.md come from this table.
#ifndef NOWCALLS_SERVER_SETTINGS_H_
#define NOWCALLS_SERVER_SETTINGS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "server/config.h"

namespace nowcalls::server {

// A setting's type in TOML. Flags and the environment give text.
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
  // Parses and stores one value; kList takes any number. kInvalidArgument completes a sentence
  // that begins with the setting's name: "must be text or json, got 'xml'".
  std::function<Status(const std::vector<std::string>& values, ServerConfig* config)> set = {};
  // Takes the value of another configuration while the server runs. Empty: the value of the start
  // stays in effect, and a change needs a restart.
  std::function<void(const ServerConfig& from, ServerConfig* to)> apply = {};
  // Prints the value in a form that `set` reads.
  std::function<std::string(const ServerConfig& config)> get = {};

  bool is_live() const { return apply != nullptr; }
  std::string flag() const;         // "--data-dir"
  std::string environment() const;  // "NOWCALLS_DATA_DIR"
  std::string toml_key() const;     // "data_dir"
};

const std::vector<Setting>& Settings();

// The position in Settings() of the setting with this TOML key, or -1.
int FindTomlKey(std::string_view key);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SETTINGS_H_
