// The configuration file: flat TOML with the keys of the table of settings.
//
// Thread: any; pure, the caller reads the file.
#ifndef NOWCALLS_SERVER_CONFIG_FILE_H_
#define NOWCALLS_SERVER_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::server {

// One key of a file, as text that the setting parses.
struct FileValue {
  size_t setting = 0;  // Position in Settings().
  std::vector<std::string> values;
  int line = 0;
};

// kInvalidArgument begins with "NAME:LINE: " and names the key: text that is not TOML, a key that
// is no setting, a value of another type than the setting has.
Result<std::vector<FileValue>> ParseConfigFile(std::string_view name, std::string_view text);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_FILE_H_
