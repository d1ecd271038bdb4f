// The commands `access ...` of the command line.
//
// Thread: any.
#ifndef NOWCALLS_ADMIN_ACCESS_ARGUMENTS_H_
#define NOWCALLS_ADMIN_ACCESS_ARGUMENTS_H_

#include <CLI/CLI.hpp>

#include "admin/arguments.h"

namespace nowcalls::admin {

struct AccessCommands {
  CLI::App* list;  // Still takes a format.
  CLI::App* test;  // Still takes a server and a format.
};
// Parsing them writes to `arguments`, which outlives the app.
AccessCommands AddAccessCommands(CLI::App* app, Arguments* arguments);

bool IsOfAccessFile(Command command);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_ACCESS_ARGUMENTS_H_
