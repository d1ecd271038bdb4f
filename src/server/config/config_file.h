// The configuration file: flat TOML, its keys those of the settings.
//
// Thread: any; pure, the caller reads the file.
#ifndef NOWCALLS_SERVER_CONFIG_CONFIG_FILE_H_
#define NOWCALLS_SERVER_CONFIG_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::server {

// A key of the file, as text for Setting::set.
struct FileValue {
  size_t setting = 0;  // Position in Settings().
  std::vector<std::string> values;
  int line = 0;
};

// kInvalidArgument begins with "NAME:LINE: " and names the key: not TOML, an unknown key, or a
// wrong type.
Result<std::vector<FileValue>> ParseConfigFile(std::string_view name, std::string_view text);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_CONFIG_FILE_H_
