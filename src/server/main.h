// The program nowcalls-server, also within another one.
#ifndef NOWCALLS_SERVER_MAIN_H_
#define NOWCALLS_SERVER_MAIN_H_

#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

class Additions;

// Runs the command line; returns the exit code (base/exit_codes.h). `store`: faults of tests; its
// durability is the configuration's.
int Main(int argc, const char* const* argv, const store::RocksStoreOptions& store = {});

// The same within another program, whose main did not begin with it.
int RunWithin(int argc, const char* const* argv, Additions* additions);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_MAIN_H_
