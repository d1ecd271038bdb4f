// The version of the RocksDB library that this process runs with. Thread: any.
#ifndef NOWCALLS_STORE_VERSION_H_
#define NOWCALLS_STORE_VERSION_H_

#include <string>

namespace nowcalls::store {

std::string RocksDbVersion();  // "7.8.3"

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_VERSION_H_
