// The program nowcalls-server, also within another one.
#ifndef NOWCALLS_SERVER_MAIN_H_
#define NOWCALLS_SERVER_MAIN_H_

#include <functional>
#include <memory>

#include "cluster/etcd.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::server {

class Additions;

// As of ServeOptions.
using ConnectEtcd = std::function<std::unique_ptr<cluster::Etcd>(const cluster::EtcdOptions& etcd)>;

// Runs the command line; returns the exit code (base/exit_codes.h). `store`: faults of tests; its
// durability is the configuration's.
int Main(int argc, const char* const* argv, ConnectEtcd connect_etcd,
         const store::RocksStoreOptions& store = {});

// The same within another program, whose main did not begin with it.
int RunWithin(int argc, const char* const* argv, Additions* additions);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_MAIN_H_
