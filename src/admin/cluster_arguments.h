// The command line of `cluster`.
//
// Thread: any.
#ifndef NOWCALLS_ADMIN_CLUSTER_ARGUMENTS_H_
#define NOWCALLS_ADMIN_CLUSTER_ARGUMENTS_H_

#include <CLI/CLI.hpp>

#include "admin/arguments.h"

namespace nowcalls::admin {

// Adds `handover` to `cluster`, whose command is kCluster without it. Returns it: it asks a server.
CLI::App* AddHandover(CLI::App* cluster, Arguments* arguments);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_CLUSTER_ARGUMENTS_H_
