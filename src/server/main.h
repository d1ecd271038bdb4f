// The program nowcalls-server.
#ifndef NOWCALLS_SERVER_MAIN_H_
#define NOWCALLS_SERVER_MAIN_H_

#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

// Reads the configuration, does what it asks for and returns the exit code (base/exit_codes.h).
// `store` is for tests that inject faults; its durability is that of the configuration.
int Main(int argc, const char* const* argv, const store::RocksStoreOptions& store = {});

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_MAIN_H_
