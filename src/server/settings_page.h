// The operator's manual page about the settings, tools/manual/configuration.md.
//
// Thread: any. `nowcalls-server --help=markdown` prints it; a test compares the file to it.
#ifndef NOWCALLS_SERVER_SETTINGS_PAGE_H_
#define NOWCALLS_SERVER_SETTINGS_PAGE_H_

#include <string>

namespace nowcalls::server {

// Markdown: an introduction, then each group of Settings() with defaults and ranges. Lines have at
// most 120 bytes.
std::string SettingsPage();

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SETTINGS_PAGE_H_
