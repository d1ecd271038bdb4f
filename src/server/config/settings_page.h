// What --help prints, with =man as a man page, with =markdown as tools/manual/configuration.md.
//
// Thread: any.
#ifndef NOWCALLS_SERVER_CONFIG_SETTINGS_PAGE_H_
#define NOWCALLS_SERVER_CONFIG_SETTINGS_PAGE_H_

#include <string>

namespace nowcalls::server {

std::string HelpText();
std::string HelpManPage();

// A test compares it to the file.
std::string SettingsPage();

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_SETTINGS_PAGE_H_
